#include "net/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "net/stream.h"
#include "net/tls_lib.h"

/* Of one stream_read() that has found no text: whoever sends so much of nothing means harm. */
enum { RECEIVES_MAX = 64 };

enum {
    RECEIVE_BYTES_MIN = TLS_RECORD_BYTES + 512, /* a record and what it adds */
    GATHER_BYTES      = 2048,                   /* what a client begins with has room in it */
};

_Static_assert((int)RECEIVE_BYTES_MIN <= (int)TLS_RAW_BYTES, "room for it");

/* --- received bytes --------------------------------------------------------------------------------- */

static size_t take(void *to, size_t len, const char *from, size_t *at, size_t end)
{
    size_t n = len < end - *at ? len : end - *at;

    memcpy(to, from + *at, n);
    *at += n;
    return n;
}

/* Text is shorter than what it comes in: no more is received than the reader has room for, so that
 * nothing is left over, or next to nothing. */
static size_t receive_len(const struct tls *tls)
{
    if (tls->wish < RECEIVE_BYTES_MIN)
        return RECEIVE_BYTES_MIN;
    return tls->wish < TLS_RAW_BYTES ? tls->wish : TLS_RAW_BYTES;
}

/* Of a read without bytes, in mbedTLS' words. */
static int fault_of(ssize_t n)
{
    if (n == STREAM_WAIT)
        return MBEDTLS_ERR_SSL_WANT_READ;
    return n == STREAM_FIN ? MBEDTLS_ERR_SSL_CONN_EOF : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

/* mbedTLS asks for a header and then for the rest of its record: from memory, the socket is asked once.
 * A short read has emptied it. */
static int receive(struct tls_session *session)
{
    struct stream *stream = session->stream;
    struct tls    *tls    = session->side->tls;
    ssize_t        n      = stream_plain_ops.read(stream, tls->raw, receive_len(tls));

    tls->drained = !stream->can_read && !stream->error;
    if (n > 0) {
        tls->raw_at  = 0;
        tls->raw_len = (size_t)n;
        tls->received += (size_t)n;
        return 0;
    }
    return fault_of(n);
}

int tls_session_gather(struct tls_session *session)
{
    char   *to = buf_reserve(&session->raw, GATHER_BYTES);
    ssize_t n;

    if (!to)
        return MBEDTLS_ERR_SSL_ALLOC_FAILED;
    n = stream_plain_ops.read(session->stream, to, GATHER_BYTES);
    if (n > 0)
        session->raw.len += (size_t)n;
    return n > 0 ? 0 : fault_of(n);
}

static int on_receive(void *arg, unsigned char *to, size_t len)
{
    struct tls_session *session = arg;
    struct tls         *tls     = session->side->tls;
    int                 rc;

    if (session->raw_at < session->raw.len)
        return (int)take(to, len, session->raw.at, &session->raw_at, session->raw.len);
    if (tls->raw_at == tls->raw_len) {
        if (tls->drained)
            return MBEDTLS_ERR_SSL_WANT_READ;
        if (tls->receives++ == RECEIVES_MAX)
            return MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE;
        rc = receive(session);
        if (rc != 0)
            return rc;
    }
    return (int)take(to, len, tls->raw, &tls->raw_at, tls->raw_len);
}

bool tls_session_is_drained(const struct tls_session *session)
{
    const struct tls *tls = session->side->tls;

    return tls->drained && tls->raw_at == tls->raw_len && session->raw_at == session->raw.len;
}

/* What mbedTLS has not taken, since a reader's buffer was full. */
static void keep_raw(struct tls_session *session)
{
    struct tls *tls = session->side->tls;

    if (session->raw_at == session->raw.len) {
        buf_fini(&session->raw);
    } else {
        buf_consume(&session->raw, session->raw_at);
    }
    session->raw_at = 0;
    if (tls->raw_at < tls->raw_len)
        buf_add(&session->raw, tls->raw + tls->raw_at, tls->raw_len - tls->raw_at);
    if (session->raw.failed && !session->broken)
        session->broken = MBEDTLS_ERR_SSL_ALLOC_FAILED;
    tls->raw_at = tls->raw_len = 0;
}

/* --- bytes to be sent ------------------------------------------------------------------------------- */

static int on_send(void *arg, const unsigned char *bytes, size_t len)
{
    struct tls_session *session = arg;
    struct buf         *staged  = &session->side->tls->staged;

    if (session->out.len - session->out_at + staged->len + len > TLS_OUT_BYTES_MAX)
        return MBEDTLS_ERR_SSL_INTERNAL_ERROR; /* it makes us answer and does not listen */
    buf_add(staged, bytes, len);
    return staged->failed ? MBEDTLS_ERR_SSL_ALLOC_FAILED : (int)len;
}

static size_t send_some(struct tls_session *session, struct str bytes)
{
    struct iovec piece = { (char *)bytes.at, bytes.len };
    ssize_t      n     = bytes.len ? stream_plain_ops.writev(session->stream, &piece, 1) : 0;

    return n > 0 ? (size_t)n : 0;
}

void tls_session_flush(struct tls_session *session)
{
    session->out_at += send_some(session, str_from(buf_str(&session->out), session->out_at));
    if (!tls_session_is_sent(session))
        return;
    buf_fini(&session->out);
    session->out_at = 0;
}

/* After our end of the talk there may be an answer to what the peer still tries, which goes nowhere. */
static void send_staged(struct tls_session *session)
{
    struct buf *staged = &session->side->tls->staged;
    size_t      sent   = 0;

    if (session->stream->shut || session->stream->error)
        sent = staged->len;
    else if (tls_session_is_sent(session))
        sent = send_some(session, buf_str(staged));
    if (sent < staged->len)
        buf_add_str(&session->out, str_from(buf_str(staged), sent));
    if (session->out.failed)
        session->broken = MBEDTLS_ERR_SSL_ALLOC_FAILED;
    buf_clear(staged);
}

/* --- around mbedTLS ---------------------------------------------------------------------------------- */

void tls_session_enter(struct tls_session *session)
{
    struct tls *tls = session->side->tls;

    assert(tls->raw_len == 0 && tls->staged.len == 0);
    tls->drained  = false;
    tls->receives = 0;
    tls->received = 0;
    tls->wish     = 0;
    tls->running  = session;
}

void tls_session_leave(struct tls_session *session)
{
    keep_raw(session);
    send_staged(session);
    session->side->tls->running = NULL;
}

void tls_session_fail(struct tls_session *session, int rc)
{
    struct stream *stream = session->stream;

    if (rc == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE) /* also of who has gone since */
        tls_fault_from(&session->fault, &session->ssl, rc);
    else if (rc == MBEDTLS_ERR_SSL_CONN_EOF || rc == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        tls_fault_set(&session->fault, TLS_LEFT, "the other side has left in the handshake");
    else if (stream->error)
        tls_fault_set(&session->fault, TLS_LEFT, "the connection broke in the handshake: %s",
                      strerror(stream->error));
    else
        tls_fault_from(&session->fault, &session->ssl, rc);
    session->state = TLS_FAILED;
    stream_fail(stream, stream->error ? stream->error : EPROTO);
}

/* --- life --------------------------------------------------------------------------------------------- */

struct tls_session *tls_session_new(struct stream *stream, struct tls_side *side, struct str early)
{
    struct tls_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    buf_init(&session->raw, SIZE_MAX);
    buf_init(&session->out, TLS_OUT_BYTES_MAX);
    buf_add_str(&session->raw, early);
    if (session->raw.failed) {
        free(session);
        return NULL;
    }
    session->stream = stream;
    session->side   = side;
    session->info   = TLS_INFO_NONE;
    list_init(&session->step.link);
    side->refs++;
    mbedtls_ssl_init(&session->ssl);
    mbedtls_ssl_set_bio(&session->ssl, session, on_send, on_receive, NULL);
    tls_pages_init(&session->pages, &session->ssl);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    tls_work_cancel(&session->step);
    limit_stop(&session->pages.limit);
    mbedtls_ssl_free(&session->ssl);
    buf_fini(&session->raw);
    buf_fini(&session->out);
    tls_fault_fini(&session->fault);
    free(session->name);
    free(session->key);
    free(session->peer);
    tls_side_drop(session->side);
    free(session);
}
