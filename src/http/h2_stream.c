#include "http/h2_stream.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "http/conn.h"
#include "http/h2_channel.h"
#include "http/h2_send.h"
#include "http/h2_wire.h"

enum {
    PROGRESS_BYTES = 256, /* less is none: a byte a second would last for ever */
    DRAIN_BYTES_MAX =
        64 * 1024,    /* of a body that nobody wants: more, and the client is told to stop */
    LINGER_MS = 1000, /* of a channel's peer, from our end to its own */
};

/* --- the beginning --------------------------------------------------------------------------------------- */

struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id)
{
    struct http_server *server = h2->conn->server;
    struct exchange    *ex     = exchange_new(server->loop, server->options.arenas, &h2_wire, NULL);
    struct h2_stream   *stream = arena_zalloc(&ex->arena, sizeof(*stream));

    stream->ex      = ex;
    stream->h2      = h2;
    stream->id      = id;
    stream->file_fd = -1;
    stream->left    = ANSWER_LENGTH_UNKNOWN;
    buf_init(&stream->out, SIZE_MAX / 2);
    list_init(&stream->turn);
    list_append(&h2->streams, &stream->link);
    server->stream_count++;
    ex->wire_data  = stream;
    ex->peer       = &h2->conn->peer;
    ex->tls        = conn_tls_info(h2->conn);
    ex->body_limit = server->limits.body_bytes;
    return stream;
}

/* The exchange is freed, by whoever was the second to let go. */
static void on_freed(void *arg)
{
    struct h2 *h2 = arg;

    h2->started--;
    if (!h2->conn && !h2->started)
        free(h2);
    else if (h2->conn && !list_is_empty(&h2->heads))
        conn_wake(h2->conn);
}

static void report(struct h2_stream *stream, unsigned status, const char *reason)
{
    const struct http_server_options *options = &stream->h2->conn->server->options;
    struct http_refusal               refusal = { .status = status,
                                                  .reason = reason,
                                                  .peer   = stream->ex->peer,
                                                  .start  = stream->ex->request.target };

    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
}

void h2_stream_dispatch(struct h2_stream *stream)
{
    struct http_server *server = stream->h2->conn->server;
    struct exchange    *ex     = stream->ex;

    stream->dispatched = true;
    stream->h2->started++;
    arena_defer(&ex->arena, on_freed, stream->h2);
    if (stream->fault.status) {
        report(stream, stream->fault.status, stream->fault.reason);
        h2_wire_problem(stream, stream->fault.status, stream->fault.reason);
        return;
    }
    server->requests++;
    server->options.dispatch(ex, server->options.arg);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void tell_sent(struct h2_stream *stream)
{
    struct exchange *ex = stream->ex;

    if (stream->told_sent)
        return;
    stream->told_sent = true;
    if (ex->work && ex->work->on_sent)
        ex->work->on_sent(ex);
}

/* What it holds of the connection and the server. */
static void give_up(struct h2_stream *stream)
{
    struct http_server *server = stream->h2->conn->server;

    list_remove(&stream->link);
    list_remove(&stream->turn);
    server->stream_count--;
    h2_send_drop(stream);
    spare_give(server, &stream->out);
    if (stream->file_fd >= 0)
        close(stream->file_fd);
}

static void let_go(struct h2_stream *stream)
{
    struct exchange *ex = stream->ex;

    spare_give_body(stream->h2->conn->server, ex);
    give_up(stream);
    exchange_wire_let_go(ex);
}

/* nghttp2 does not know it any more, and what its work has left unread is no burden to others. */
static void forget(struct h2_stream *stream)
{
    struct h2 *h2 = stream->h2;

    if (h2->head_of == stream)
        h2->head_of = NULL;
    nghttp2_session_set_stream_user_data(h2->session, stream->id, NULL);
    h2_send_conn_window(h2, stream->ex->body_bytes - stream->given_back);
    stream->given_back = stream->ex->body_bytes;
}

/* RFC 9113, 8.1: the answer is complete, and what the client has still to send is of no use. A little of
 * it is under way already, and may come. */
static void stop_body(struct h2_stream *stream)
{
    const struct exchange *ex = stream->ex;
    bool is_small             = !ex->request.chunked && !stream->tunnel && stream->continued &&
                    ex->request.content_length <= DRAIN_BYTES_MAX;

    if (!stream->peer_ended && !stream->closed && !is_small)
        h2_send_reset(stream, NGHTTP2_NO_ERROR);
}

static void finish(struct h2_stream *stream)
{
    struct h2   *h2   = stream->h2;
    struct conn *conn = h2->conn;

    stop_body(stream);
    forget(stream);
    conn->progress = true;
    list_remove(&stream->link);
    list_remove(&stream->turn);
    list_append(&h2->answered, &stream->link);
    stream->mark = conn->output ? conn->output->written + conn_pending(conn) : 0;
}

void h2_stream_tell_answered(struct h2 *h2)
{
    struct output *output = h2->conn->output;

    while (!list_is_empty(&h2->answered)) {
        struct h2_stream *stream = container_of(h2->answered.next, struct h2_stream, link);

        if (output && stream->mark > output->written)
            return;
        tell_sent(stream);
        let_go(stream);
    }
}

void h2_stream_lost(struct h2_stream *stream, enum gone_why why)
{
    bool was_sent = stream->told_sent;

    forget(stream);
    give_up(stream);
    if (stream->channel)
        h2_channel_lost(stream, why);
    if (was_sent)
        exchange_wire_let_go(stream->ex);
    else
        exchange_wire_lost(stream->ex, why);
}

/* --- news --------------------------------------------------------------------------------------------------------- */

static void cut(struct h2_stream *stream, uint32_t code)
{
    if (!stream->cut && !stream->closed)
        h2_send_reset(stream, code);
    stream->cut = true;
}

/* nghttp2 sends nothing of a stream that it is to reset, and what was written before that, in the same
 * turn, is to arrive as in HTTP/1: it goes out first. */
static bool is_first_notice(struct h2_stream *stream)
{
    if (stream->cut_due || stream->closed)
        return false;
    stream->cut_due = true;
    h2_stream_has_news(stream);
    return true;
}

/* The work has gone: the wire says what is left to say. */
static void answer_for_work(struct h2_stream *stream)
{
    struct exchange *ex     = stream->ex;
    bool             broken = ex->request_state == REQUEST_BROKEN;
    unsigned         status = broken ? ex->request_fault : 500;
    const char      *reason = broken ? stream->fault.reason : "the request was not answered";

    if (ex->answer_state == ANSWER_OPEN) {
        report(stream, status, reason);
        h2_wire_problem(stream, status, reason);
    } else if (ex->answer_state == ANSWER_BODY) {
        ex->answer_state = ANSWER_ABORTED;
    }
}

static bool is_over(const struct h2_stream *stream)
{
    if (stream->cut)
        return stream->closed;
    if (stream->channel)
        return stream->said_end && (stream->closed || stream->peer_ended);
    return stream->said_end && stream->ex->answer_state == ANSWER_ENDED;
}

static void tell_body(struct h2_stream *stream)
{
    struct exchange *ex       = stream->ex;
    bool             has_data = stream->has_data && ex->body_wanted, has_end;

    stream->has_data = false;
    if (has_data && ex->work && ex->work->on_body && ex->answer_state != ANSWER_ENDED)
        ex->work->on_body(ex);
    has_end         = stream->has_end && ex->body_wanted;
    stream->has_end = false;
    if (has_end && ex->work && ex->work->on_body_end && ex->answer_state != ANSWER_ENDED)
        ex->work->on_body_end(ex);
}

static void tell_room(struct h2_stream *stream)
{
    struct exchange *ex = stream->ex;

    if (!stream->wants_room || h2_send_pending(stream) > CONN_LOW_BYTES)
        return;
    stream->wants_room = false;
    if (ex->work && ex->work->on_room && ex->answer_state == ANSWER_BODY)
        ex->work->on_room(ex);
}

static void tell_work(struct h2_stream *stream)
{
    if (stream->channel) {
        tell_sent(stream);
        h2_channel_tell(stream);
        return;
    }
    tell_body(stream);
    tell_room(stream);
}

void h2_stream_tell(struct h2_stream *stream)
{
    struct exchange *ex = stream->ex;

    list_remove(&stream->turn);
    if (stream->dispatched && !ex->work && !h2_stream_is_dead(stream))
        answer_for_work(stream);
    if (ex->answer_state == ANSWER_ABORTED && !is_first_notice(stream))
        cut(stream, NGHTTP2_INTERNAL_ERROR);
    if (is_over(stream))
        finish(stream);
    else if (h2_stream_is_dead(stream))
        h2_stream_lost(stream, GONE_CLIENT);
    else
        tell_work(stream);
}

/* --- no more comes -------------------------------------------------------------------------------------------------- */

void h2_stream_hears_no_more(struct h2_stream *stream)
{
    if (stream->h2->head_of == stream && !stream->dispatched) {
        h2_stream_lost(stream, GONE_CLIENT); /* half a head is not worth an answer */
        return;
    }
    if (stream->peer_ended)
        return;
    stream->peer_ended = true;
    if (stream->tunnel) {
        stream->has_data = true;
    } else if (stream->ex->request_state == REQUEST_BODY) {
        h2_wire_break_body(stream, 400, "the connection ended inside the body");
        stream->has_end = true;
    }
    if (stream->dispatched)
        h2_stream_has_news(stream);
}

/* --- who is slow ---------------------------------------------------------------------------------------------------- */

static bool waits_for_body(const struct h2_stream *stream)
{
    const struct exchange *ex = stream->ex;

    return stream->dispatched && ex->request_state == REQUEST_BODY && ex->body_wanted &&
           exchange_untaken(ex) < CONN_HIGH_BYTES;
}

/* The peer of a channel that has ended has not. */
static bool waits_for_peer(const struct h2_stream *stream)
{
    return stream->channel && stream->said_end && !stream->peer_ended;
}

/* Nothing waits in the output is not enough: a turn may have ended before all was moved there. */
bool h2_stream_waits_for_window(const struct h2_stream *stream)
{
    nghttp2_session *session = stream->h2->session;

    return h2_send_pending(stream) > 0 && !conn_pending(stream->h2->conn) &&
           (nghttp2_session_get_remote_window_size(session) <= 0 ||
            nghttp2_session_get_stream_remote_window_size(session, stream->id) <= 0);
}

/* One direction of one stream: how much has moved, and since when it has not. True: for longer than
 * LIMIT_MS, if that is a limit. */
static bool has_stalled(bool waits, uint64_t moved, uint64_t *seen, uint64_t *since_ms,
                        uint64_t limit_ms, uint64_t now_ms)
{
    if (!waits || !*since_ms || moved - *seen >= PROGRESS_BYTES) {
        *seen     = moved;
        *since_ms = waits ? now_ms : 0;
        return false;
    }
    return limit_ms && now_ms - *since_ms >= limit_ms;
}

void h2_stream_tick(struct h2_stream *stream, uint64_t now_ms)
{
    const struct http_limits *limits  = &stream->h2->conn->server->limits;
    bool                      lingers = waits_for_peer(stream);

    if (has_stalled(lingers || waits_for_body(stream), stream->ex->body_bytes, &stream->seen_in,
                    &stream->in_since_ms, lingers ? LINGER_MS : limits->body_ms, now_ms)) {
        if (lingers) {
            cut(stream, NGHTTP2_CANCEL);
        } else {
            h2_wire_break_body(stream, 408, "the body took too long");
            stream->has_end = true;
        }
        h2_stream_has_news(stream);
        conn_wake(stream->h2->conn);
    }
    if (has_stalled(h2_stream_waits_for_window(stream), stream->framed, &stream->seen_out,
                    &stream->out_since_ms, limits->write_ms, now_ms)) {
        h2_send_reset(stream, NGHTTP2_CANCEL);
        conn_wake(stream->h2->conn);
        h2_stream_lost(stream, GONE_TIMEOUT);
    }
}
