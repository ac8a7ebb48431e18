#include "http/h2_send.h"

#include <unistd.h>

#include "base/iov.h"
#include "http/conn.h"
#include "http/message.h"

enum { FRAME_HEAD_BYTES = 9 };

/* Memory that is missing ends the connection; all else that nghttp2 may refuse is a stream that has
 * gone in the meantime. */
static void check(struct h2 *h2, int result)
{
    if (nghttp2_is_fatal(result))
        h2->conn->failed = true;
}

/* --- the body's bytes -------------------------------------------------------------------------------- */

static uint64_t out_pending(const struct h2_stream *stream)
{
    return stream->out.len - stream->out_used;
}

uint64_t h2_send_pending(const struct h2_stream *stream)
{
    return stream->whole.len + out_pending(stream) + stream->file_left;
}

static size_t at_most(size_t len, uint64_t bytes)
{
    return len < bytes ? len : (size_t)bytes;
}

static size_t take_whole(struct h2_stream *stream, char *to, size_t len)
{
    size_t n = at_most(len, stream->whole.len);

    if (n)
        memcpy(to, stream->whole.at, n);
    stream->whole = str_from(stream->whole, n);
    return n;
}

static size_t take_out(struct h2_stream *stream, char *to, size_t len)
{
    size_t n = at_most(len, out_pending(stream));

    if (n)
        memcpy(to, stream->out.at + stream->out_used, n);
    stream->out_used += n;
    stream->h2->kept -= n;
    if (stream->out_used == stream->out.len) {
        buf_clear(&stream->out);
        stream->out_used = 0;
    }
    return n;
}

/* Less than LEN: the file has become shorter than its head said. */
static size_t take_file(struct h2_stream *stream, char *to, size_t len)
{
    size_t taken = 0;

    while (taken < len) {
        ssize_t n = pread(stream->file_fd, to + taken, len - taken, stream->file_at);

        if (n <= 0)
            return taken;
        taken += (size_t)n;
        stream->file_at += n;
        stream->file_left -= (uint64_t)n;
    }
    return taken;
}

/* Exactly LEN bytes, of which there are as many. */
static bool take(struct h2_stream *stream, char *to, size_t len)
{
    size_t taken = take_whole(stream, to, len);

    taken += take_out(stream, to + taken, len - taken);
    if (taken < len)
        taken += take_file(stream, to + taken, len - taken);
    return taken == len;
}

/* --- DATA, as nghttp2 asks for it ------------------------------------------------------------------------- */

static ssize_t end_data(struct h2_stream *stream, size_t ready, uint32_t *flags)
{
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailers.count) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        check(stream->h2, nghttp2_submit_trailer(stream->h2->session, stream->id,
                                                 stream->trailers.at, stream->trailers.count));
    }
    return (ssize_t)ready;
}

/* Windows of a byte make a frame of every byte. The turn looks at the fault. */
static void count_crumb(struct h2 *h2)
{
    if (h2_guard_spend(&h2->guard, H2_CRUMB, loop_now_ns(h2->conn->server->loop) / 1000000))
        return;
    h2->fault_code = NGHTTP2_ENHANCE_YOUR_CALM;
    h2->fault      = h2->guard.why;
}

/* How much the next frame holds; LEN is what windows and RFC 9113's frame size let out. */
static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len,
                       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct h2_stream *stream = source->ptr;
    struct h2        *h2     = arg;
    uint64_t          ready  = h2_send_pending(stream);

    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (ready > len) {
        if (len < H2_CRUMB_BYTES)
            count_crumb(h2);
        return (ssize_t)len;
    }
    if (stream->complete)
        return end_data(stream, (size_t)ready, flags);
    if (ready)
        return (ssize_t)ready;
    stream->starved = true;
    return NGHTTP2_ERR_DEFERRED;
}

int h2_send_on_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *arg)
{
    struct h2_stream *stream = source->ptr;
    struct h2        *h2     = arg;
    struct buf       *out    = &conn_output(h2->conn)->bytes;
    char             *to;

    if (conn_pending(h2->conn) >= CONN_HIGH_BYTES)
        return NGHTTP2_ERR_WOULDBLOCK;
    to = buf_reserve(out, FRAME_HEAD_BYTES + length);
    if (!to)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(to, head, FRAME_HEAD_BYTES);
    if (!take(stream, to + FRAME_HEAD_BYTES, length))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
    out->len += FRAME_HEAD_BYTES + length;
    stream->framed += length;
    if (stream->wants_room && h2_send_pending(stream) <= CONN_LOW_BYTES)
        h2_stream_has_news(stream);
    return 0;
}

/* --- submitting --------------------------------------------------------------------------------------------- */

void h2_send_head(struct h2_stream *stream, const struct h2_fields *fields, bool has_body)
{
    nghttp2_data_provider body = { .source.ptr = stream, .read_callback = on_read };

    check(stream->h2, nghttp2_submit_response(stream->h2->session, stream->id, fields->at,
                                              fields->count, has_body ? &body : NULL));
}

void h2_send_interim(struct h2_stream *stream, const struct h2_fields *fields)
{
    check(stream->h2, nghttp2_submit_headers(stream->h2->session, NGHTTP2_FLAG_NONE, stream->id,
                                             NULL, fields->at, fields->count, NULL));
}

void h2_send_more(struct h2_stream *stream)
{
    if (!stream->starved)
        return;
    stream->starved = false;
    check(stream->h2, nghttp2_session_resume_data(stream->h2->session, stream->id));
}

static size_t keep(struct h2_stream *stream, const struct iovec *iov, int count, size_t most)
{
    size_t kept;

    spare_take(stream->h2->conn->server, &stream->out);
    kept = iov_copy(&stream->out, iov, count, 0, most);
    if (stream->out.failed)
        stream->h2->conn->failed = true;
    stream->h2->kept += kept;
    return kept;
}

void h2_send_keep_all(struct h2_stream *stream, struct str body)
{
    struct iovec piece = { (void *)body.at, body.len };

    keep(stream, &piece, 1, body.len);
}

static size_t room_for(const struct h2_stream *stream)
{
    uint64_t pending = h2_send_pending(stream);
    size_t   high    = stream->h2->kept < H2_KEPT_BYTES ? CONN_HIGH_BYTES : H2_CROWDED_ROOM;

    return pending < high ? high - (size_t)pending : 0;
}

ssize_t h2_send_keep(struct h2_stream *stream, const struct iovec *iov, int count)
{
    size_t room = room_for(stream), kept;

    if (!room) {
        stream->wants_room = true;
        return -1;
    }
    kept = keep(stream, iov, count, room);
    h2_send_more(stream);
    conn_wake(stream->h2->conn);
    return (ssize_t)kept;
}

void h2_send_drop(struct h2_stream *stream)
{
    stream->h2->kept -= out_pending(stream);
    stream->out_used = stream->out.len;
}

void h2_send_reset(struct h2_stream *stream, uint32_t code)
{
    check(stream->h2,
          nghttp2_submit_rst_stream(stream->h2->session, NGHTTP2_FLAG_NONE, stream->id, code));
}

void h2_send_window(struct h2_stream *stream, uint64_t bytes)
{
    stream->given_back += bytes;
    if (bytes)
        check(stream->h2, nghttp2_session_consume(stream->h2->session, stream->id, (size_t)bytes));
}

void h2_send_conn_window(struct h2 *h2, uint64_t bytes)
{
    if (bytes)
        check(h2, nghttp2_session_consume_connection(h2->session, (size_t)bytes));
}

/* --- to the output -------------------------------------------------------------------------------------------- */

void h2_send_pump(struct h2 *h2)
{
    struct conn *conn = h2->conn;

    while (conn_pending(conn) < CONN_HIGH_BYTES && !conn->failed) {
        const uint8_t *bytes;
        ssize_t        n = nghttp2_session_mem_send(h2->session, &bytes);

        if (n < 0)
            conn->failed = true;
        if (n <= 0)
            return;
        buf_add(&conn_output(conn)->bytes, bytes, (size_t)n);
    }
}
