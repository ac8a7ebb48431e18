#include "client/h2_client_read.h"

#include "client/h2_client_state.h"

enum {
    FIELD_OVERHEAD = 32, /* of each, as the protocol counts them (RFC 9113, 6.5.2) */
    FIRST_STATUS   = 100,
    LAST_INTERIM   = 199,
};

/* --- the end of a stream, as the server has it ------------------------------------------------------- */

/* What is called is NGHTTP2_NO_ERROR to NGHTTP2_HTTP_1_1_REQUIRED. */
static const char *reset_text(uint32_t code)
{
    static const char *const TEXTS[] = {
        "the server gave up the stream",
        "the server gave up the stream: PROTOCOL_ERROR",
        "the server gave up the stream: INTERNAL_ERROR",
        "the server gave up the stream: FLOW_CONTROL_ERROR",
        "the server gave up the stream: SETTINGS_TIMEOUT",
        "the server gave up the stream: STREAM_CLOSED",
        "the server gave up the stream: FRAME_SIZE_ERROR",
        "the server refused the stream",
        "the server gave up the stream: CANCEL",
        "the server gave up the stream: COMPRESSION_ERROR",
        "the server gave up the stream: CONNECT_ERROR",
        "the server gave up the stream: ENHANCE_YOUR_CALM",
        "the server gave up the stream: INADEQUATE_SECURITY",
        "the server gave up the stream: it wants HTTP/1.1",
    };

    return TEXTS[code < sizeof(TEXTS) / sizeof(TEXTS[0]) ? code : 0];
}

static const char *goaway_text(uint32_t code)
{
    switch (code) {
    case NGHTTP2_NO_ERROR: return NULL;
    case NGHTTP2_ENHANCE_YOUR_CALM: return "the server ended the connection: ENHANCE_YOUR_CALM";
    case NGHTTP2_INADEQUATE_SECURITY: return "the server ended the connection: INADEQUATE_SECURITY";
    case NGHTTP2_HTTP_1_1_REQUIRED: return "the server ended the connection: it wants HTTP/1.1";
    default: return "the server ended the connection: it found an error in our HTTP/2";
    }
}

static enum h2_client_fault fault_of_reset(const struct h2_client_stream *stream, uint32_t code)
{
    return code == NGHTTP2_HTTP_1_1_REQUIRED && !stream->has_head ? H2_CLIENT_H1 : H2_CLIENT_RESET;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct h2_client_stream *stream = h2_client_state_find(arg, id);

    if (!stream)
        return 0;
    if (code == NGHTTP2_REFUSED_STREAM)
        h2_client_state_fail(stream, H2_CLIENT_UNSEEN, reset_text(code));
    else if (stream->was_reset)
        h2_client_state_fail(stream, fault_of_reset(stream, code), reset_text(code));
    else
        h2_client_state_fail(stream, H2_CLIENT_BROKEN, "the response breaks the rules of HTTP/2");
    return 0;
}

/* --- what comes in ----------------------------------------------------------------------------------- */

static bool is_too_much(struct h2_client_stream *stream, size_t name_len, size_t value_len)
{
    stream->field_bytes += (uint32_t)(name_len + value_len + FIELD_OVERHEAD);
    return ++stream->fields > H2_CLIENT_FIELDS_MAX ||
           stream->field_bytes > H2_CLIENT_HEAD_BYTES_MAX;
}

/* Three digits: the library has looked at them. */
static unsigned status_of(const uint8_t *value)
{
    return (unsigned)(value[0] - '0') * 100 + (unsigned)(value[1] - '0') * 10 +
           (unsigned)(value[2] - '0');
}

/* One that is not even interim says nothing of what follows. */
static int take_status(struct h2_client_stream *stream, const uint8_t *value)
{
    stream->status = status_of(value);
    if (stream->status >= FIRST_STATUS)
        return 0;
    stream->fault = "the status is malformed";
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *arg)
{
    struct h2_client        *client = arg;
    struct h2_client_stream *stream = h2_client_state_find(client, frame->hd.stream_id);

    if (!stream)
        return 0;
    if (is_too_much(stream, name_len, value_len)) {
        stream->fault = stream->has_head ? "the response's trailers are too large"
                                         : "the response's head is too large";
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (name[0] == ':')
        return take_status(stream, value);
    if (client->events->on_field && (stream->has_head || stream->status > LAST_INTERIM))
        client->events->on_field(stream, str_make((const char *)name, name_len),
                                 str_make((const char *)value, value_len));
    return 0;
}

static void refuse(struct h2_client_stream *stream, const char *text)
{
    nghttp2_submit_rst_stream(stream->client->session, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_ENHANCE_YOUR_CALM);
    h2_client_state_fail(stream, H2_CLIENT_BROKEN, text);
}

static void take_head(struct h2_client *client, struct h2_client_stream *stream)
{
    stream->fields = stream->field_bytes = 0; /* the next ones are others */
    if (stream->has_head)                     /* these were trailers */
        return;
    if (stream->status > LAST_INTERIM) {
        stream->has_head = true;
        client->events->on_head(stream);
    } else if (++stream->interims > H2_CLIENT_INTERIM_MAX) {
        refuse(stream, "too many interim responses");
    }
}

static void take_settings(struct h2_client *client)
{
    uint32_t theirs = nghttp2_session_get_remote_settings(client->session,
                                                          NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    client->is_ready = true;
    client->limit    = theirs < client->streams_max ? theirs : client->streams_max;
}

/* An event may give the stream up and its memory to another: it is looked for again. */
static void take_frame_of_stream(struct h2_client *client, const nghttp2_frame *frame)
{
    struct h2_client_stream *stream = h2_client_state_find(client, frame->hd.stream_id);

    if (stream && frame->hd.type == NGHTTP2_HEADERS)
        take_head(client, stream);
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return;
    stream = h2_client_state_find(client, frame->hd.stream_id);
    if (stream)
        h2_client_state_end(stream);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2_client        *client = arg;
    struct h2_client_stream *stream;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: take_frame_of_stream(client, frame); break;
    case NGHTTP2_RST_STREAM:
        stream = h2_client_state_find(client, frame->hd.stream_id);
        if (stream)
            stream->was_reset = true;
        break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            take_settings(client);
        break;
    case NGHTTP2_GOAWAY:
        client->is_left    = true;
        client->goaway_why = goaway_text(frame->goaway.error_code);
        break;
    default: break;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *arg)
{
    struct h2_client        *client = arg;
    struct h2_client_stream *stream = h2_client_state_find(client, id);

    if (!client->takes_all)
        nghttp2_session_consume_connection(session, len);
    if (stream)
        client->events->on_data(stream, str_make((const char *)data, len));
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code,
                            void *arg)
{
    struct h2_client        *client = arg;
    struct h2_client_stream *stream = h2_client_state_find(client, frame->hd.stream_id);

    if (stream)
        stream->fault = nghttp2_strerror(code);
    else
        client->invalid_why = nghttp2_strerror(code);
    return 0;
}

void h2_client_read_listen(nghttp2_session_callbacks *to)
{
    nghttp2_session_callbacks_set_on_header_callback(to, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(to, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(to, on_stream_close);
}
