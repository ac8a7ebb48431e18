#include "http/h2_events.h"

#include "http/conn.h"
#include "http/h2_send.h"
#include "http/h2_stream.h"
#include "http/h2_wire.h"
#include "http/message.h"

enum {
    /* HPACK makes a kilobyte of a byte: a head over its limit is answered, one of so many times that is an
     * attack. */
    HEAD_EXCESS_MAX = 8,
};

static uint64_t now_ms(const struct h2 *h2)
{
    return loop_now_ns(h2->conn->server->loop) / 1000000;
}

static struct h2_stream *find(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

/* Nothing is read any more. */
static int end_with(struct h2 *h2, uint32_t code, const char *why)
{
    h2->fault_code = code;
    h2->fault      = why;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* --- what every frame costs --------------------------------------------------------------------------- */

static int bear(struct h2 *h2, enum h2_nuisance nuisance)
{
    if (h2_guard_spend(&h2->guard, nuisance, now_ms(h2)))
        return 0;
    return end_with(h2, NGHTTP2_ENHANCE_YOUR_CALM, h2->guard.why);
}

/* RFC 9113, 5.1.1: no stream is opened anew. nghttp2 passes such over, since it forgets streams at their
 * end; but only those that we have reset may have been on their way. */
static int bear_headers(struct h2 *h2, int32_t id)
{
    if (id > h2->last_id || id <= h2->reset_id || nghttp2_session_find_stream(h2->session, id))
        return 0;
    return end_with(h2, NGHTTP2_STREAM_CLOSED, "HEADERS for a stream that has ended");
}

/* RFC 9113, 6.3; nghttp2 looks at none of these, since RFC 9218 is in their place. */
static int bear_priority(struct h2 *h2, const nghttp2_frame_hd *frame)
{
    if (frame->type == NGHTTP2_PRIORITY && !frame->stream_id)
        return end_with(h2, NGHTTP2_PROTOCOL_ERROR, "PRIORITY for stream 0");
    return bear(h2, H2_PRIORITY);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *frame, void *arg)
{
    struct h2 *h2     = arg;
    bool       is_ack = frame->flags & NGHTTP2_FLAG_ACK; /* END_STREAM has the same bit */

    switch (frame->type) {
    case NGHTTP2_DATA: return frame->length || is_ack ? 0 : bear(h2, H2_EMPTY);
    case NGHTTP2_HEADERS: return bear_headers(h2, frame->stream_id);
    case NGHTTP2_PRIORITY:
    case NGHTTP2_PRIORITY_UPDATE: return bear_priority(h2, frame);
    case NGHTTP2_RST_STREAM: return bear(h2, H2_RESET);
    case NGHTTP2_SETTINGS: return is_ack ? 0 : bear(h2, H2_SETTINGS);
    case NGHTTP2_PING: return is_ack ? 0 : bear(h2, H2_PING);
    case NGHTTP2_WINDOW_UPDATE: return bear(h2, H2_WINDOW);
    case NGHTTP2_CONTINUATION: return bear(h2, H2_FRAGMENT);
    default: return 0;
    }
}

/* --- header blocks -------------------------------------------------------------------------------------- */

/* Trailers of a stream that has been answered are read for the sake of compression alone. */
static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2        *h2     = arg;
    struct h2_stream *stream = find(session, frame->hd.stream_id);

    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        stream      = h2_stream_new(h2, frame->hd.stream_id);
        h2->last_id = stream->id;
        nghttp2_session_set_stream_user_data(session, stream->id, stream);
    }
    h2->head_of = stream;
    h2->head_ms = now_ms(h2);
    if (stream)
        h2_head_init(&h2->head, &stream->ex->arena, &h2->conn->server->head_limits);
    return 0;
}

static struct str str_of_rcbuf(nghttp2_rcbuf *rcbuf)
{
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(rcbuf);

    return str_make((const char *)vec.base, vec.len);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
    struct h2 *h2 = arg;

    if (!h2->head_of)
        return 0;
    h2_head_add(&h2->head, str_of_rcbuf(name), nghttp2_rcbuf_is_static(name), str_of_rcbuf(value));
    if (h2->head.bytes <= (uint64_t)HEAD_EXCESS_MAX * h2->head.limits->head_bytes)
        return 0;
    return end_with(h2, NGHTTP2_ENHANCE_YOUR_CALM, "a header section of far more than its limit");
}

/* A field that RFC 9113 does not allow makes the stream malformed. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_len, const uint8_t *value,
                             size_t value_len, uint8_t flags, void *arg)
{
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static bool has_priority(const struct request *request)
{
    return request_field_by_name(request, STR("priority")) != NULL;
}

/* RFC 9218 has answers without a priority go out one after the other. They share instead, or an endless
 * one would hold up the others for ever; who says what it wants is heard. */
static void share_by_default(struct h2_stream *stream)
{
    nghttp2_extpri shared = { .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1 };

    if (!has_priority(&stream->ex->request))
        nghttp2_session_change_extpri_stream_priority(stream->h2->session, stream->id, &shared, 0);
}

static void end_head(struct h2_stream *stream, bool ends)
{
    struct h2       *h2 = stream->h2;
    struct exchange *ex = stream->ex;

    ex->started_ns = loop_now_ns(h2->conn->server->loop);
    if (h2_head_end(&h2->head, &ex->request, ends))
        share_by_default(stream);
    else
        stream->fault = h2->head.fault;
    stream->tunnel    = ex->request.upgrade.len > 0;
    stream->continued = !ex->request.expects_continue;
    ex->request_state = ex->request.has_body ? REQUEST_BODY : REQUEST_ENDED;
    list_append(&h2->heads, &stream->turn);
}

static void end_trailers(struct h2_stream *stream)
{
    struct h2_head *head = &stream->h2->head;

    if (h2_head_end_trailers(head, &stream->ex->request) ||
        stream->ex->request_state != REQUEST_BODY)
        return;
    h2_wire_break_body(stream, head->fault.status, head->fault.reason);
    stream->has_end = true;
}

static void end_block(struct h2 *h2, const nghttp2_frame *frame)
{
    struct h2_stream *stream = h2->head_of;

    h2->head_of = NULL;
    if (!stream)
        return;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        end_head(stream, frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    else
        end_trailers(stream);
}

/* --- bodies ---------------------------------------------------------------------------------------------- */

/* Who is not dispatched yet finds its body there when it is. */
static void note_news(struct h2_stream *stream)
{
    if (stream->dispatched)
        h2_stream_has_news(stream);
}

static bool takes_data(const struct h2_stream *stream)
{
    if (!stream)
        return false;
    if (stream->tunnel)
        return !stream->cut;
    return stream->ex->request_state == REQUEST_BODY && stream->ex->answer_state != ANSWER_ENDED &&
           !stream->cut;
}

static void keep_data(struct h2_stream *stream, struct str data)
{
    struct exchange *ex   = stream->ex;
    struct conn     *conn = stream->h2->conn;

    spare_take(conn->server, &ex->body);
    if (!exchange_put_body(ex, data))
        conn->failed = true;
    stream->has_data = true;
    if (!stream->tunnel && ex->body_wanted && h2_wire_is_too_large(ex)) {
        h2_wire_break_body(stream, 413, "the body is too large");
        stream->has_end = true;
    }
    note_news(stream);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *arg)
{
    struct h2_stream *stream = find(session, id);

    if (takes_data(stream))
        keep_data(stream, str_make((const char *)data, len));
    else
        h2_send_conn_window(arg, len);
    return 0;
}

static void end_stream(nghttp2_session *session, int32_t id)
{
    struct h2_stream *stream = find(session, id);

    if (!stream)
        return;
    stream->peer_ended = true;
    if (stream->tunnel)
        stream->has_data = true;
    else if (stream->ex->request_state == REQUEST_BODY) {
        stream->ex->request_state = REQUEST_ENDED;
        stream->has_end           = true;
    }
    note_news(stream);
}

/* --- frames ------------------------------------------------------------------------------------------------ */

static bool is_padding_alone(const nghttp2_frame *frame)
{
    return frame->hd.length && frame->hd.length <= frame->data.padlen &&
           !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2 *h2 = arg;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS: end_block(h2, frame); break;
    case NGHTTP2_DATA:
        if (is_padding_alone(frame) && bear(h2, H2_EMPTY) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        break;
    case NGHTTP2_SETTINGS: h2->ready = true; return 0;
    case NGHTTP2_PING:
        h2->notice_seen |= h2->noticed && frame->hd.flags & NGHTTP2_FLAG_ACK;
        return 0;
    default: return 0;
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        end_stream(session, frame->hd.stream_id);
    return 0;
}

static bool is_their_fault(uint32_t code)
{
    return code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && code != NGHTTP2_INTERNAL_ERROR;
}

static void note_reset(struct h2 *h2, const nghttp2_frame *frame)
{
    if (frame->hd.stream_id > h2->reset_id)
        h2->reset_id = frame->hd.stream_id;
    if (is_their_fault(frame->rst_stream.error_code))
        bear(h2, H2_BROKEN); /* the turn looks at the fault */
}

static void note_said(struct h2 *h2, const nghttp2_frame *frame)
{
    bool              ends   = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    struct h2_stream *stream = ends ? find(h2->session, frame->hd.stream_id) : NULL;

    h2_guard_earn(&h2->guard);
    if (!stream)
        return;
    stream->said_end = true;
    h2_stream_has_news(stream);
}

/* nghttp2 sends a PING before all else, so the one behind the first GOAWAY is not submitted earlier. */
static void note_goaway(struct h2 *h2)
{
    if (h2->noticed && !h2->left)
        nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
}

static int on_frame_out(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    switch (frame->hd.type) {
    case NGHTTP2_RST_STREAM: note_reset(arg, frame); break;
    case NGHTTP2_GOAWAY: note_goaway(arg); break;
    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS: note_said(arg, frame); break;
    default: break;
    }
    return 0;
}

/* A head that is too large for HTTP/2: its stream cannot be answered. */
static int on_frame_not_out(nghttp2_session *session, const nghttp2_frame *frame, int why,
                            void *arg)
{
    struct h2_stream *stream = find(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_HEADERS && stream && !stream->closed)
        h2_send_reset(stream, NGHTTP2_INTERNAL_ERROR);
    return 0;
}

/* What nobody works on goes at once: a packet may hold two thousand of such. */
static int on_stream_closed(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct h2_stream *stream = find(session, id);

    if (!stream)
        return 0;
    stream->closed = true;
    if (stream->dispatched)
        h2_stream_has_news(stream);
    else
        h2_stream_lost(stream, GONE_CLIENT);
    return 0;
}

void h2_events_register(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_out);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_out);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, h2_send_on_data);
}
