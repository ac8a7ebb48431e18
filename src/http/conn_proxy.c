#include "http/conn_proxy.h"

#include "http/conn.h"
#include "http/conn_tls.h"
#include "net/proxy_header.h"

enum { READS_MAX = 16 }; /* in one turn: a header is small, but may come byte by byte */

static void refuse(struct conn *conn, const char *reason)
{
    const struct http_server_options *options = &conn->server->options;
    struct http_refusal refusal = { .kind = REFUSED_PROXY, .reason = reason, .peer = &conn->peer };

    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
    conn->state  = CONN_CLOSING;
    conn->failed = true;
}

/* Who only knocks, to see whether anybody listens, has done nothing wrong. */
static void on_end(struct conn *conn)
{
    if (conn_rest(conn).len)
        refuse(conn, "it ended in its middle");
    conn->state = CONN_CLOSING;
}

/* False: nothing more is there now. */
static bool read_more(struct conn *conn)
{
    switch (conn_fill(conn, CONN_HEAD_READ_BYTES)) {
    case FILL_BYTES: return true;
    case FILL_NOTHING: return false;
    case FILL_END: break;
    }
    on_end(conn);
    return false;
}

static void open_for(struct conn *conn, const struct proxy_header *header)
{
    if (header->told)
        conn->peer = header->client;
    conn_consume(conn, header->used);
    conn->state = conn_tls_first_state(conn->server);
}

void conn_proxy_run(struct conn *conn)
{
    for (unsigned reads = 0; reads < READS_MAX; reads++) {
        struct proxy_header header;

        switch (proxy_header_read(&header, conn_rest(conn))) {
        case PROXY_DONE: open_for(conn, &header); return;
        case PROXY_BAD: refuse(conn, header.fault); return;
        case PROXY_MORE: break;
        }
        if (!read_more(conn))
            return;
    }
    conn->again = true;
}

void conn_proxy_is_late(struct conn *conn)
{
    if (conn_rest(conn).len)
        refuse(conn, "it took too long");
    conn->state = CONN_CLOSING;
}
