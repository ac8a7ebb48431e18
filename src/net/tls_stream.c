/* Handshake, reading, writing, the end, each from the calls of a stream. */
#include "net/tls_stream.h"

#include <assert.h>

#include "base/iov.h"
#include "net/stream.h"
#include "net/tls_lib.h"
#include "net/tls_peer.h"
#include "net/tls_session.h"

/* Received for one stream_read() that has found text. */
enum { READ_BYTES_MAX = 4 * TLS_RAW_BYTES };

static void start_idling(struct tls_session *session)
{
    limit_start(&session->pages.limit, &session->side->tls->idles);
}

/* --- handshake ---------------------------------------------------------------------------------------- */

static int set_up(struct tls_session *session)
{
    const struct tls_side_ops *ops = session->side->ops;
    int                        rc  = ops->wait ? ops->wait(session->side, session) : 0;

    if (rc != 0)
        return rc;
    rc = mbedtls_ssl_setup(&session->ssl, &session->side->conf);

    session->is_set_up = rc == 0;
    return rc == 0 ? ops->prepare(session->side, session) : rc;
}

static void learn(struct tls_session *session)
{
    const char *alpn = mbedtls_ssl_get_alpn_protocol(&session->ssl);

    tls_peer_learn(session);
    session->info.cipher  = tls_lib_cipher(&session->ssl);
    session->info.alpn    = alpn ? alpn : "";
    session->info.resumed = session->resumed;
    session->info.version = mbedtls_ssl_get_version(&session->ssl);
}

/* The first bytes of the owner's talk may have come with the last of the handshake, and neither brings
 * an event: so both directions are said to be ready, and the next calls tell. */
static void open(struct tls_session *session)
{
    struct stream *stream = session->stream;

    if (!session->side->ops->accept(session->side, session)) {
        tls_session_enter(session);
        mbedtls_ssl_send_alert_message(&session->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                       MBEDTLS_SSL_ALERT_MSG_BAD_CERT);
        tls_session_leave(session);
        tls_session_fail(session, MBEDTLS_ERR_SSL_INTERNAL_ERROR);
        return;
    }
    learn(session);
    session->state    = TLS_OPEN;
    stream->can_read  = true;
    stream->can_write = tls_session_is_sent(session);
    start_idling(session);
}

static int shake(struct tls_session *session)
{
    int rc = session->is_set_up ? 0 : set_up(session);

    if (rc != 0)
        return rc;
    tls_session_enter(session);
    do
        rc = mbedtls_ssl_handshake(&session->ssl);
    while (tls_lib_verdict(rc) == TLS_LIB_TICKET);
    if (tls_lib_verdict(rc) == TLS_LIB_AGAIN)
        tls_lib_switch_keys(&session->ssl, &session->side->conf);
    else if (rc != 0)
        tls_lib_alert(&session->ssl, rc);
    tls_session_leave(session);
    return session->broken ? session->broken : rc;
}

static void on_step(struct tls_work *work)
{
    struct tls_session *session = container_of(work, struct tls_session, step);
    struct stream      *stream  = session->stream;
    int                 rc      = shake(session);

    switch (tls_lib_verdict(rc)) {
    case TLS_LIB_DONE: open(session); break;
    case TLS_LIB_AGAIN:
        stream->can_read = false;
        stream_read_again(stream);
        if (stream->can_read)
            tls_work_ask(session->side->tls, work);
        stream->can_read = stream->can_write = false;
        return;
    default: tls_session_fail(session, rc);
    }
    stream->on_event(stream, stream->arg);
}

/* --- events ------------------------------------------------------------------------------------------- */

static void send_rest(struct tls_session *session)
{
    struct stream *stream = session->stream;

    tls_session_flush(session);
    if (session->is_ending && tls_session_is_sent(session))
        stream_plain_ops.shut(stream);
}

static bool tls_on_news(struct stream *stream)
{
    struct tls_session *session = stream->tls;

    if (!tls_session_is_sent(session) && stream->can_write)
        send_rest(session);
    if (session->state != TLS_SHAKING)
        return stream->can_read || stream->can_write || stream->saw_err;
    stream->can_read = stream->can_write = false;
    tls_work_ask(session->side->tls, &session->step);
    return false;
}

/* --- reading ------------------------------------------------------------------------------------------ */

static bool is_fatal(int rc)
{
    return tls_lib_verdict(rc) == TLS_LIB_BROKEN;
}

/* mbedTLS 3.6 says "again" also when it has a message of TLS 1.3 in hand and wants to be called to look
 * at it. */
static bool has_message(const mbedtls_ssl_context *ssl)
{
    return ssl->MBEDTLS_PRIVATE(state) != MBEDTLS_SSL_HANDSHAKE_OVER;
}

/* Records of a byte each would keep the worker for long. */
static bool has_read_long(const struct tls *tls, size_t got)
{
    return got > 0 && tls->received >= READ_BYTES_MAX;
}

/* Asked again, mbedTLS could only say that it wants to read, and takes 0.1 us for that. */
static bool has_read_all(const struct tls_session *session)
{
    return tls_session_is_drained(session) && session->ssl.MBEDTLS_PRIVATE(in_left) == 0 &&
           mbedtls_ssl_get_bytes_avail(&session->ssl) == 0;
}

/* Reads until LEN bytes are there, or enough of them, or something else than text comes: RC says what,
 * 0 nothing. */
static size_t decrypt(struct tls_session *session, unsigned char *to, size_t len, int *rc)
{
    struct tls_side *side       = session->side;
    size_t           got        = 0;
    bool             has_looked = false;

    *rc = 0;
    while (got < len && !has_read_long(side->tls, got)) {
        int n;

        side->tls->wish = len - got;
        n               = mbedtls_ssl_read(&session->ssl, to + got, len - got);
        if (n > 0) {
            got += (size_t)n;
            if (has_read_all(session)) {
                *rc = MBEDTLS_ERR_SSL_WANT_READ;
                break;
            }
        } else if (tls_lib_verdict(n) == TLS_LIB_TICKET) {
            side->ops->remember(side, session);
            has_looked = false;
        } else if (tls_lib_verdict(n) == TLS_LIB_AGAIN && has_message(&session->ssl) &&
                   !has_looked) {
            has_looked = true;
        } else {
            *rc = n == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : n;
            break;
        }
    }
    return got;
}

/* An end that only the socket tells of may be somebody else's. */
static void note_end(struct tls_session *session, int rc)
{
    enum tls_lib_verdict verdict = tls_lib_verdict(rc);

    if (verdict != TLS_LIB_END && verdict != TLS_LIB_EOF)
        return;
    session->got_end         = true;
    session->stream->cut     = verdict == TLS_LIB_EOF;
    session->stream->saw_fin = true;
}

static bool has_more(const struct tls_session *session)
{
    return session->got_end || session->broken || session->raw.len > 0 ||
           mbedtls_ssl_get_bytes_avail(&session->ssl) > 0;
}

static ssize_t fail(struct tls_session *session, int rc)
{
    if (session->stream->error && rc != MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
        session->state = TLS_FAILED; /* the socket's fault: `error` says it all */
    else
        tls_session_fail(session, rc);
    session->stream->can_read = false;
    return STREAM_FAIL;
}

/* Without an answer of the socket's (RC) nothing was found out about it; else it was read until it had
 * no more, and only a FIN leaves something to come back for. */
static ssize_t tls_read(struct stream *stream, void *to, size_t len)
{
    struct tls_session *session = stream->tls;
    size_t              got;
    int                 rc;

    if (session->state == TLS_SHAKING) {
        stream->can_read = false;
        return STREAM_WAIT;
    }
    if (session->state == TLS_FAILED)
        return STREAM_FAIL;
    if (session->got_end)
        return STREAM_FIN;
    if (session->broken)
        return fail(session, session->broken);

    tls_session_enter(session);
    got = decrypt(session, to, len, &rc);
    tls_session_leave(session);
    start_idling(session);
    note_end(session, rc);
    if (is_fatal(rc))
        session->broken = rc;
    if (rc == 0)
        stream->can_read = true;
    else
        stream->can_read = stream->saw_fin || has_more(session);
    if (got > 0)
        return (ssize_t)got;
    if (session->got_end)
        return STREAM_FIN;
    return session->broken ? fail(session, session->broken) : STREAM_WAIT;
}

/* --- writing ------------------------------------------------------------------------------------------ */

/* A place in the pieces of a write. */
struct cursor {
    const struct iovec *iov;
    int                 count;
    size_t              at; /* in the first */
};

static void move_on(struct cursor *cursor, size_t bytes)
{
    cursor->at += bytes;
    while (cursor->count && cursor->at >= cursor->iov->iov_len) {
        cursor->at -= cursor->iov->iov_len;
        cursor->iov++;
        cursor->count--;
    }
}

/* The next record's text: in its place, or, if the piece is too small to fill one, with what follows
 * it. */
static struct str next_text(struct tls *tls, const struct cursor *from, size_t len_max)
{
    struct cursor cursor = *from;
    struct str    first =
        str_make((char *)cursor.iov->iov_base + cursor.at, cursor.iov->iov_len - cursor.at);
    size_t len = 0;

    if (first.len >= len_max || cursor.count == 1)
        return str_make(first.at, first.len < len_max ? first.len : len_max);
    while (cursor.count && len < len_max) {
        size_t room = len_max - len, left = cursor.iov->iov_len - cursor.at;
        size_t n = left < room ? left : room;

        memcpy(tls->gather + len, (char *)cursor.iov->iov_base + cursor.at, n);
        len += n;
        move_on(&cursor, n);
    }
    return str_make((char *)tls->gather, len);
}

/* Less than 0: an error of mbedTLS. */
static int record_bytes_max(const mbedtls_ssl_context *ssl)
{
    int max = mbedtls_ssl_get_max_out_record_payload(ssl);

    return max < TLS_RECORD_BYTES ? max : TLS_RECORD_BYTES;
}

/* Records of a batch, collected in `staged`. The bytes of text in them. */
static size_t encrypt_batch(struct tls_session *session, struct cursor *cursor)
{
    size_t done = 0;
    int    max  = record_bytes_max(&session->ssl);
    int    n    = max;

    while (n > 0 && cursor->count && done < TLS_BATCH_BYTES) {
        struct str text = next_text(session->side->tls, cursor, (size_t)max);

        n = mbedtls_ssl_write(&session->ssl, (const unsigned char *)text.at, text.len);
        if (n > 0) {
            move_on(cursor, (size_t)n);
            done += (size_t)n;
        }
    }
    if (n <= 0)
        session->broken = n ? n : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    return done;
}

/* Text that is encrypted is its owner's until its last record is with the kernel; since that is no
 * shorter than the text, what is not sent of it bounds what is owed. */
static size_t settle(struct tls_session *session, size_t offered)
{
    size_t left  = session->out.len - session->out_at;
    size_t debt  = session->debt < left ? session->debt : left;
    size_t taken = session->debt - debt;

    if (taken > offered)
        taken = offered;
    session->debt -= taken;
    return taken;
}

static size_t write_batch(struct tls_session *session, struct cursor *cursor)
{
    tls_session_enter(session);
    session->debt = encrypt_batch(session, cursor);
    tls_session_leave(session);
    return settle(session, session->debt);
}

static ssize_t tls_writev(struct stream *stream, const struct iovec *iov, int count)
{
    struct tls_session *session = stream->tls;
    struct cursor       cursor  = { iov, count, 0 };
    size_t              offered = iov_len(iov, count);
    size_t              taken;

    assert(!session->is_ending && !stream->shut);
    if (session->state == TLS_FAILED || stream->error)
        return STREAM_FAIL;
    if (session->state == TLS_SHAKING) {
        stream->can_write = false;
        return STREAM_WAIT;
    }
    move_on(&cursor, session->debt < offered ? session->debt : offered);
    tls_session_flush(session);
    taken = settle(session, offered);
    while (cursor.count && tls_session_is_sent(session) && !session->broken && !stream->error)
        taken += write_batch(session, &cursor);
    start_idling(session);
    if (session->broken && taken == 0)
        return fail(session, session->broken);
    if (stream->error && taken == 0)
        return STREAM_FAIL;
    if (!tls_session_is_sent(session))
        stream->can_write = false;
    return taken > 0 || offered == 0 ? (ssize_t)taken : STREAM_WAIT;
}

static ssize_t tls_sendfile(struct stream *stream, int file_fd, off_t *offset, size_t len)
{
    return stream->tls->state == TLS_FAILED ? STREAM_FAIL : STREAM_UNSUPPORTED;
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void tls_shut(struct stream *stream)
{
    struct tls_session *session = stream->tls;

    if (stream->shut || session->is_ending)
        return;
    session->is_ending = true;
    if (session->state == TLS_OPEN && !stream->error) {
        tls_session_enter(session);
        mbedtls_ssl_close_notify(&session->ssl);
        tls_session_leave(session);
    }
    if (tls_session_is_sent(session) || stream->error)
        stream_plain_ops.shut(stream);
}

static void tls_fini(struct stream *stream)
{
    tls_session_free(stream->tls);
    stream->tls = NULL;
    stream->ops = &stream_plain_ops;
}

static const struct stream_ops tls_ops = {
    .read     = tls_read,
    .writev   = tls_writev,
    .sendfile = tls_sendfile,
    .shut     = tls_shut,
    .fini     = tls_fini,
    .on_news  = tls_on_news,
};

/* The socket is not read from here: what a handshake costs is the queue's affair. */
void tls_stream_attach(struct tls_session *session, bool starts)
{
    struct stream *stream = session->stream;
    bool           begins = starts || stream->can_read || session->raw.len > 0;

    tls_work_init(&session->step, on_step);
    stream->tls      = session;
    stream->ops      = &tls_ops;
    stream->can_read = stream->can_write = false;
    if (begins)
        tls_work_ask(session->side->tls, &session->step);
}

/* --- what is known ------------------------------------------------------------------------------------- */

const struct tls_info *tls_info(const struct stream *stream)
{
    return stream->tls && stream->tls->info.version ? &stream->tls->info : NULL;
}

const char *tls_fault(const struct stream *stream)
{
    if (!stream->tls || stream->tls->fault.kind == TLS_WELL)
        return "";
    return stream->tls->fault.text ? stream->tls->fault.text : "TLS has failed, and no memory";
}

enum tls_failure tls_fault_kind(const struct stream *stream)
{
    return stream->tls ? stream->tls->fault.kind : TLS_WELL;
}
