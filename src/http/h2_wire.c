#include "http/h2_wire.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/iov.h"
#include "http/conn.h"
#include "http/h2_channel.h"
#include "http/h2_send.h"
#include "http/message.h"
#include "http/respond.h"

enum {
    WHOLE_BYTES_MAX = 2048
}; /* an answer up to this lies in the arena, a larger one in a buffer */

static struct conn *conn_of(const struct h2_stream *stream)
{
    return stream->h2->conn;
}

/* --- the request's body -------------------------------------------------------------------------------- */

void h2_wire_break_body(struct h2_stream *stream, unsigned short status, const char *reason)
{
    struct exchange *ex = stream->ex;

    stream->fault     = (struct h1_fault){ status, reason };
    ex->request_state = REQUEST_BROKEN;
    ex->request_fault = status;
}

bool h2_wire_is_too_large(const struct exchange *ex)
{
    const struct request *request   = &ex->request;
    uint64_t              announced = request->chunked ? 0 : request->content_length;

    return announced > ex->body_limit || ex->body_bytes > ex->body_limit;
}

/* What the work has taken may come anew. */
static void open_window(struct h2_stream *stream)
{
    struct exchange *ex = stream->ex;

    h2_send_window(stream, ex->body_bytes - exchange_untaken(ex) - stream->given_back);
}

/* RFC 9110, 10.1.1, as in HTTP/1. */
static void wire_want(struct exchange *ex)
{
    static const struct answer go_on  = { .status = 100 };
    struct h2_stream          *stream = h2_stream_of(ex);

    if (h2_stream_is_dead(stream))
        return;
    if (ex->request_state == REQUEST_BODY && h2_wire_is_too_large(ex)) {
        h2_wire_break_body(stream, 413, "the body is too large");
        return;
    }
    if (!stream->continued && ex->answer_state == ANSWER_OPEN) {
        struct h2_fields fields = h2_fields_of_interim(&ex->arena, &go_on);

        h2_send_interim(stream, &fields);
    }
    stream->continued = true;
    open_window(stream);
    conn_wake(conn_of(stream));
}

/* --- heads ------------------------------------------------------------------------------------------------ */

static void send_head(struct h2_stream *stream, const struct answer *answer, uint64_t length,
                      bool has_body)
{
    struct exchange *ex = stream->ex;
    struct h2_fields fields =
        h2_fields_of_answer(&ex->arena, answer, length, &conn_of(stream)->server->date);

    ex->answer_status = (unsigned short)answer->status;
    h2_send_head(stream, &fields, has_body);
    conn_wake(conn_of(stream));
}

/* The body in one, copied: small ones in the arena, whose chunk is there anyway. */
static void keep_whole(struct h2_stream *stream, struct str body)
{
    if (body.len <= WHOLE_BYTES_MAX)
        stream->whole = arena_copy(&stream->ex->arena, body);
    else
        h2_send_keep_all(stream, body);
    stream->complete = true;
}

void h2_wire_problem(struct h2_stream *stream, unsigned status, const char *reason)
{
    struct exchange *ex       = stream->ex;
    struct answer    answer   = { .status = status, .content_type = RESPOND_PROBLEM_TYPE };
    bool             has_body = !str_is(ex->request.method, STR("HEAD"));
    struct buf       body;

    buf_init(&body, RESPOND_PROBLEM_BYTES_MAX);
    respond_problem_body(&body, status, reason);
    if (has_body)
        keep_whole(stream, buf_str(&body));
    send_head(stream, &answer, body.len, has_body);
    buf_fini(&body);
    ex->answer_state = ANSWER_ENDED;
}

/* To who asked for a tunnel, 2xx is the tunnel (RFC 8441, 5): a handler that knows of none must not seem
 * to open it. What it says is counted and not sent. */
static bool is_no_tunnel(struct exchange *ex, const struct answer *answer)
{
    struct h2_stream *stream = h2_stream_of(ex);

    if (!stream->tunnel || answer->status >= 300)
        return false;
    h2_wire_problem(stream, 501, "nothing here switches protocols");
    ex->answer_head_only = true;
    stream->left         = ANSWER_LENGTH_UNKNOWN;
    ex->answer_state     = ANSWER_BODY;
    return true;
}

/* LENGTH of the body; BODY: all of it, or NULL where it follows. */
static int begin_answer(struct exchange *ex, const struct answer *answer, uint64_t length,
                        const struct str *body)
{
    struct h2_stream *stream      = h2_stream_of(ex);
    bool              has_no_body = answer->status == 204 || answer->status == 304;

    if (!respond_is_sound(answer))
        return EXCHANGE_INVALID;
    if (h2_stream_is_dead(stream))
        return EXCHANGE_GONE;
    if (is_no_tunnel(ex, answer))
        return 0;
    ex->answer_head_only = has_no_body || str_is(ex->request.method, STR("HEAD"));
    stream->left         = has_no_body ? ANSWER_LENGTH_UNKNOWN : length;
    if (body && body->len && !ex->answer_head_only)
        keep_whole(stream, *body);
    send_head(stream, answer, length, !ex->answer_head_only && length);
    ex->answer_state = ANSWER_BODY;
    return 0;
}

static int wire_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    return begin_answer(ex, answer, length, NULL);
}

static int wire_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    int result = begin_answer(ex, answer, body.len, &body);

    if (result < 0)
        return result;
    ex->sent_bytes   = body.len;
    ex->answer_state = ANSWER_ENDED;
    return 0;
}

static int wire_interim(struct exchange *ex, const struct answer *answer)
{
    struct h2_stream *stream = h2_stream_of(ex);
    struct h2_fields  fields;

    if (!respond_is_sound_interim(answer))
        return EXCHANGE_INVALID;
    if (h2_stream_is_dead(stream))
        return EXCHANGE_GONE;
    fields = h2_fields_of_interim(&ex->arena, answer);
    h2_send_interim(stream, &fields);
    conn_wake(conn_of(stream));
    return 0;
}

/* --- bodies -------------------------------------------------------------------------------------------------- */

/* As in HTTP/1: who writes a body that is not sent waits as if it filled a window. */
static ssize_t count_unseen(struct h2_stream *stream, size_t len)
{
    if (len && stream->unseen >= CONN_HIGH_BYTES) {
        stream->unseen     = 0;
        stream->wants_room = true;
        h2_stream_has_news(stream);
        conn_put_off(conn_of(stream));
        return EXCHANGE_WAIT;
    }
    stream->unseen += len;
    stream->left -= stream->left != ANSWER_LENGTH_UNKNOWN ? len : 0;
    stream->ex->sent_bytes += len;
    return (ssize_t)len;
}

static ssize_t wire_body(struct exchange *ex, const struct iovec *iov, int count)
{
    struct h2_stream *stream = h2_stream_of(ex);
    size_t            total  = iov_len(iov, count);
    ssize_t           kept;

    if (h2_stream_is_dead(stream))
        return EXCHANGE_GONE;
    if (stream->left != ANSWER_LENGTH_UNKNOWN && total > stream->left)
        return EXCHANGE_INVALID;
    if (ex->answer_head_only || !total)
        return count_unseen(stream, total);
    kept = h2_send_keep(stream, iov, count);
    if (kept < 0)
        return EXCHANGE_WAIT;
    stream->left -= stream->left != ANSWER_LENGTH_UNKNOWN ? (uint64_t)kept : 0;
    ex->sent_bytes += (size_t)kept;
    return kept;
}

/* Trailers belong to an answer whose length was not said, as in HTTP/1. */
static int wire_end(struct exchange *ex, const struct field *trailers, unsigned trailer_count)
{
    struct h2_stream *stream     = h2_stream_of(ex);
    bool              has_length = stream->left != ANSWER_LENGTH_UNKNOWN;

    if (!respond_are_sound_trailers(trailers, trailer_count))
        return EXCHANGE_INVALID;
    if (h2_stream_is_dead(stream))
        return EXCHANGE_GONE;
    if (!ex->answer_head_only && !has_length && trailer_count)
        stream->trailers = h2_fields_of_trailers(&ex->arena, trailers, trailer_count);
    /* Less than was announced: the client must not take it for the whole. */
    ex->answer_state =
        has_length && stream->left && !ex->answer_head_only ? ANSWER_ABORTED : ANSWER_ENDED;
    stream->complete = true;
    h2_send_more(stream);
    h2_stream_has_news(stream);
    conn_wake(conn_of(stream));
    return 0;
}

/* Read piece by piece when there is room for each in the client's window. */
static int wire_file(struct exchange *ex, int fd, off_t offset, uint64_t len)
{
    struct h2_stream *stream     = h2_stream_of(ex);
    bool              has_length = stream->left != ANSWER_LENGTH_UNKNOWN;

    if (has_length ? len != stream->left : !ex->answer_head_only) {
        close(fd);
        return EXCHANGE_INVALID;
    }
    if (ex->answer_head_only || !len || h2_stream_is_dead(stream)) {
        close(fd);
    } else {
        stream->file_fd   = fd;
        stream->file_at   = offset;
        stream->file_left = len;
    }
    ex->sent_bytes += len;
    ex->answer_state = ANSWER_ENDED;
    stream->complete = true;
    h2_send_more(stream);
    h2_stream_has_news(stream);
    conn_wake(conn_of(stream));
    return 0;
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static void wire_abort(struct exchange *ex, enum gone_why why)
{
    ex->answer_state = ANSWER_ABORTED;
    h2_stream_has_news(h2_stream_of(ex));
    conn_wake(conn_of(h2_stream_of(ex)));
}

/* RFC 8441, 5: 200, and DATA is the channel's. */
static struct channel *wire_upgrade(struct exchange *ex, struct str protocol,
                                    const struct answer *answer)
{
    struct h2_stream *stream = h2_stream_of(ex);
    struct answer     opened = *answer;

    if (!stream->tunnel || h2_stream_is_dead(stream) || conn_of(stream)->server->draining ||
        !respond_is_sound_upgrade(protocol, answer))
        return NULL;
    opened.status       = 200;
    opened.content_type = STR_NONE;
    send_head(stream, &opened, ANSWER_LENGTH_UNKNOWN, true);
    ex->answer_state = ANSWER_ENDED;
    return h2_channel_new(stream);
}

static void wire_work_gone(struct exchange *ex)
{
    h2_stream_has_news(h2_stream_of(ex));
    conn_wake(conn_of(h2_stream_of(ex)));
}

const struct exchange_wire h2_wire = {
    .head      = wire_head,
    .answer    = wire_answer,
    .body      = wire_body,
    .file      = wire_file,
    .end       = wire_end,
    .abort     = wire_abort,
    .want      = wire_want,
    .interim   = wire_interim,
    .upgrade   = wire_upgrade,
    .work_gone = wire_work_gone,
};
