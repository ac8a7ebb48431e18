/* The first bytes are read by us and handed over: they tell TLS from a client that has said http:// to
 * this port, and they come behind a PROXY header as likely as not. From there on TLS reads by itself,
 * and tells when it is done. */
#include "http/conn_tls.h"

#include <string.h>

#include "base/str.h"
#include "http/h1.h"
#include "http/h2.h"

static void refuse(struct conn *conn, const char *reason)
{
    const struct http_server_options *options = &conn->server->options;
    struct http_refusal               refusal = { .kind   = REFUSED_HANDSHAKE,
                                                  .reason = reason,
                                                  .peer   = &conn->peer };

    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
    conn->state  = CONN_CLOSING;
    conn->failed = true;
}

/* --- the first byte -------------------------------------------------------------------------------- */

static void begin_handshake(struct conn *conn)
{
    struct str hello = conn_rest(conn);

    if (tls_accept(&conn->stream, conn->server->options.tls, hello) != 0) {
        refuse(conn, "no memory");
        return;
    }
    conn_consume(conn, hello.len);
    conn->state = CONN_HANDSHAKE;
}

/* A method is upper case letters: whoever sends something else hears nothing of HTTP. */
static void refuse_plain(struct conn *conn)
{
    static const struct h1_fault plain = { 400,
                                           "this port speaks HTTPS: the URL begins with https://" };
    char                         first = conn_rest(conn).at[0];

    if (first >= 'A' && first <= 'Z')
        h1_refuse(conn, &plain);
    else
        refuse(conn, "what came is no TLS");
}

static void read_hello(struct conn *conn)
{
    if (!conn_rest(conn).len) {
        switch (conn_fill(conn, CONN_HEAD_READ_BYTES)) {
        case FILL_BYTES: break;
        case FILL_NOTHING: return;
        case FILL_END:
            conn->state = CONN_CLOSING;
            return; /* who only knocks has done nothing wrong */
        }
    }
    if (conn_rest(conn).at[0] == TLS_HANDSHAKE_BYTE)
        begin_handshake(conn);
    else
        refuse_plain(conn);
}

/* --- the rest of it ----------------------------------------------------------------------------------- */

static void finish(struct conn *conn, const struct tls_info *agreed)
{
    const struct http_server_options *options = &conn->server->options;

    conn->state = CONN_OPEN;
    if (options->on_handshake)
        options->on_handshake(agreed->resumed, options->arg);
    if (strcmp(agreed->alpn, "h2") == 0)
        h2_begin(conn);
}

void conn_tls_run(struct conn *conn)
{
    if (conn->state == CONN_HELLO)
        read_hello(conn);
    if (conn->state != CONN_HANDSHAKE)
        return;
    if (tls_fault_kind(&conn->stream) != TLS_WELL)
        refuse(conn, tls_fault(&conn->stream));
    else if (tls_info(&conn->stream))
        finish(conn, tls_info(&conn->stream));
}

void conn_tls_is_late(struct conn *conn)
{
    if (conn->state == CONN_HANDSHAKE)
        refuse(conn, "it took too long");
    conn->state = CONN_CLOSING;
}
