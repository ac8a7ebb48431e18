/* nghttp2 keeps the frames, the tables of names and the windows; here stand what a request becomes, and what
 * bounds it. A stream that was given up has no owner for the library (its user data is NULL), so
 * whatever still comes of it meets nobody. */
#include "client/h2_client.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "client/h2_client_read.h"
#include "client/h2_client_state.h"
#include "http/h2_memory.h"
#include "http/message.h"

enum {
    CONNECTION_WINDOW = 16 * 1024 * 1024,
    REQUEST_HEAD_MAX  = 1024 * 1024, /* of a request; the library's own bound is 64 KiB */
};

/* --- requests --------------------------------------------------------------------------------------- */

static size_t copy_whole(struct h2_client_stream *stream, uint8_t *to, size_t room)
{
    size_t len = stream->body.len < room ? stream->body.len : room;

    if (len)
        memcpy(to, stream->body.at, len);
    stream->body = str_from(stream->body, len);
    return len;
}

static size_t copy_written(struct h2_client_stream *stream, uint8_t *to, size_t room)
{
    size_t len = stream->out.len < room ? stream->out.len : room;

    if (!len)
        return 0;
    memcpy(to, stream->out.at, len);
    buf_consume(&stream->out, len);
    return len;
}

/* The event comes behind what the library is at. */
static void note_progress(struct h2_client_stream *stream)
{
    struct h2_client *client = stream->client;

    if (client->events->on_room && !list_is_linked(&stream->room))
        list_append(&client->rooms, &stream->room);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct h2_client_stream *stream = h2_client_state_find(arg, id);
    size_t                   len;

    if (!stream) /* given up; its RST_STREAM is on its way */
        return NGHTTP2_ERR_DEFERRED;
    len = copy_whole(stream, to, room);
    len += copy_written(stream, to + len, room - len);
    if (stream->wants_room && stream->out.len <= H2_CLIENT_OUT_BYTES_MAX / 2) {
        stream->wants_room = false;
        note_progress(stream);
    }
    if (stream->body_is_all && !stream->body.len && !stream->out.len) {
        stream->body_is_out = true;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        note_progress(stream);
    } else if (!len) {
        stream->starves = true;
        note_progress(stream);
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)len;
}

/* Of a request without a body this is all; who does not ask is not told. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2_client_stream *stream = NULL;

    if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        stream = h2_client_state_find(arg, frame->hd.stream_id);
    if (stream)
        note_progress(stream);
    return 0;
}

static nghttp2_nv *make_pairs(struct h2_client *client, const struct h2_client_request *request)
{
    uint8_t     flags = request->fields_stay
                            ? NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE
                            : NGHTTP2_NV_FLAG_NONE;
    nghttp2_nv *pairs;

    buf_clear(&client->pairs);
    pairs =
        (nghttp2_nv *)(void *)buf_reserve(&client->pairs, request->field_count * sizeof(*pairs));
    for (unsigned i = 0; pairs && i < request->field_count; i++)
        pairs[i] = (nghttp2_nv){
            (uint8_t *)request->fields[i].name.at,
            (uint8_t *)request->fields[i].value.at,
            request->fields[i].name.len,
            request->fields[i].value.len,
            flags,
        };
    return pairs;
}

bool h2_client_request(struct h2_client *client, struct h2_client_stream *stream,
                       const struct h2_client_request *request)
{
    nghttp2_data_provider from     = { .read_callback = read_body };
    bool                  has_body = request->body.len || request->has_more;
    nghttp2_nv           *pairs    = h2_client_room(client) ? make_pairs(client, request) : NULL;
    int32_t               id;

    if (!pairs)
        return false;
    id = nghttp2_submit_request(client->session, NULL, pairs, request->field_count,
                                has_body ? &from : NULL, stream);
    if (id < 0)
        return false;
    *stream = (struct h2_client_stream){
        .client      = client,
        .id          = id,
        .body        = request->body,
        .body_is_all = !request->has_more,
        .body_is_out = !has_body, /* it goes with the head, without which nothing comes back */
    };
    buf_init(&stream->out, H2_CLIENT_OUT_BYTES_MAX);
    list_init(&stream->room);
    list_append(&client->streams, &stream->link);
    client->under_way++;
    return true;
}

static void feed_body(struct h2_client_stream *stream)
{
    if (stream->starves)
        nghttp2_session_resume_data(stream->client->session, stream->id);
    stream->starves = false;
}

size_t h2_client_write(struct h2_client_stream *stream, struct str data)
{
    size_t room = H2_CLIENT_OUT_BYTES_MAX - stream->out.len;
    size_t len  = data.len < room ? data.len : room;

    buf_add(&stream->out, data.at, len);
    if (stream->out.failed) /* no memory: some may be free when the rest has gone out */
        len = 0;
    stream->out.failed = false;
    stream->wants_room = len < data.len;
    if (len)
        feed_body(stream);
    return len;
}

void h2_client_end_body(struct h2_client_stream *stream)
{
    stream->body_is_all = true;
    feed_body(stream);
}

bool h2_client_is_begun(const struct h2_client_stream *stream)
{
    return !stream->client || h2_client_state_find(stream->client, stream->id);
}

bool h2_client_is_sent(const struct h2_client_stream *stream)
{
    return stream->body_is_out && h2_client_is_begun(stream);
}

void h2_client_take(struct h2_client_stream *stream, size_t bytes)
{
    if (stream->client && bytes)
        nghttp2_session_consume_stream(stream->client->session, stream->id, bytes);
}

void h2_client_cancel(struct h2_client_stream *stream)
{
    struct h2_client *client = stream->client;

    if (!client)
        return;
    nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    h2_client_state_forget(stream);
}

/* --- bytes ------------------------------------------------------------------------------------------- */

/* Of a request that never left the library names no owner. */
static struct h2_client_stream *find_unsent(struct h2_client *client, int32_t id)
{
    list_each(node, &client->streams)
    {
        struct h2_client_stream *stream = container_of(node, struct h2_client_stream, link);

        if (stream->id == id)
            return stream;
    }
    return NULL;
}

static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int code,
                             void *arg)
{
    struct h2_client_stream *stream;

    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    stream = find_unsent(arg, frame->hd.stream_id);
    if (!stream)
        return 0;
    if (code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED || code == NGHTTP2_ERR_SESSION_CLOSING)
        h2_client_state_fail(stream, H2_CLIENT_UNSEEN, "the connection was ending");
    else
        h2_client_state_fail(stream, H2_CLIENT_BROKEN, nghttp2_strerror(code));
    return 0;
}

bool h2_client_feed(struct h2_client *client, const char *bytes, size_t len)
{
    ssize_t n;

    if (client->is_dead)
        return false;
    n = nghttp2_session_mem_recv(client->session, (const uint8_t *)bytes, len);
    if (n >= 0)
        return true;
    client->is_dead     = true;
    client->invalid_why = nghttp2_strerror((int)n);
    return false;
}

static bool next_rest(struct h2_client *client)
{
    const uint8_t *data;
    ssize_t        n = client->is_dead ? 0 : nghttp2_session_mem_send(client->session, &data);

    if (n < 0) {
        client->is_dead     = true;
        client->invalid_why = nghttp2_strerror((int)n);
    }
    client->rest = n > 0 ? str_make((const char *)data, (size_t)n) : STR_NONE;
    return n > 0;
}

static void tell_of_room(struct h2_client *client)
{
    struct list *first;

    while ((first = list_take_first(&client->rooms)))
        client->events->on_room(container_of(first, struct h2_client_stream, room));
}

size_t h2_client_produce(struct h2_client *client, char *to, size_t room)
{
    size_t made = 0;

    while (made < room && (client->rest.len || next_rest(client))) {
        size_t len = client->rest.len < room - made ? client->rest.len : room - made;

        memcpy(to + made, client->rest.at, len);
        client->rest = str_from(client->rest, len);
        made += len;
    }
    tell_of_room(client);
    return made;
}

/* --- the connection --------------------------------------------------------------------------------- */

bool h2_client_is_ready(const struct h2_client *client)
{
    return client->is_ready;
}

bool h2_client_is_leaving(const struct h2_client *client)
{
    return client->is_left || client->is_dead ||
           !nghttp2_session_check_request_allowed(client->session);
}

bool h2_client_is_over(const struct h2_client *client)
{
    return client->is_dead || (!client->rest.len && !nghttp2_session_want_read(client->session) &&
                               !nghttp2_session_want_write(client->session));
}

/* We say GOAWAY for one reason alone. */
bool h2_client_is_broken(const struct h2_client *client)
{
    return !client->is_left && h2_client_is_over(client);
}

const char *h2_client_why(const struct h2_client *client)
{
    if (!client->is_ready)
        return "the server does not speak HTTP/2";
    if (!h2_client_is_broken(client))
        return client->goaway_why;
    return client->invalid_why ? client->invalid_why : "the server breaks the rules of HTTP/2";
}

unsigned h2_client_room(const struct h2_client *client)
{
    unsigned limit = client->is_ready ? client->limit : 1;

    return client->under_way < limit && !h2_client_is_leaving(client) ? limit - client->under_way
                                                                      : 0;
}

unsigned h2_client_under_way(const struct h2_client *client)
{
    return client->under_way;
}

void h2_client_lose(struct h2_client *client)
{
    const char *why = h2_client_why(client);

    client->is_dead = true;
    while (!list_is_empty(&client->streams)) {
        struct h2_client_stream *stream =
            container_of(client->streams.next, struct h2_client_stream, link);

        h2_client_state_fail(stream, h2_client_is_begun(stream) ? H2_CLIENT_LOST : H2_CLIENT_UNSEEN,
                             why ? why : "the connection ended");
    }
}

/* --- life -------------------------------------------------------------------------------------------- */

static nghttp2_session_callbacks *make_callbacks(const struct h2_client_events *events)
{
    nghttp2_session_callbacks *to;

    if (nghttp2_session_callbacks_new(&to) != 0)
        return NULL;
    h2_client_read_listen(to);
    if (events->on_room)
        nghttp2_session_callbacks_set_on_frame_send_callback(to, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(to, on_frame_not_send);
    return to;
}

static nghttp2_option *make_options(bool takes_all)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(option, !takes_all);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_send_header_block_length(option, REQUEST_HEAD_MAX);
    return option;
}

static bool open_session(struct h2_client *client, const struct h2_client_options *options)
{
    nghttp2_session_callbacks *callbacks = make_callbacks(client->events);
    nghttp2_option            *option    = make_options(options->takes_all);
    bool                       is_open =
        callbacks && option &&
        nghttp2_session_client_new3(&client->session, callbacks, client, option,
                                    options->memory ? &options->memory->calls : NULL) == 0;

    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return is_open;
}

static bool say_settings(struct h2_client *client, uint32_t window)
{
    nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_CLIENT_HEAD_BYTES_MAX },
    };
    int32_t all = window > CONNECTION_WINDOW ? (int32_t)window : CONNECTION_WINDOW;

    return nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, 3) == 0 &&
           nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0, all) == 0;
}

int h2_client_open(struct h2_client **out, const struct h2_client_options *options,
                   const struct h2_client_events *events, struct err *err)
{
    struct h2_client *client = calloc(1, sizeof(*client));

    if (!client)
        return err_set(err, ERR_MEMORY, "no memory for an HTTP/2 connection");
    client->events      = events;
    client->takes_all   = options->takes_all;
    client->streams_max = options->streams ? options->streams : H2_CLIENT_STREAMS_MAX;
    list_init(&client->streams);
    list_init(&client->rooms);
    buf_init(&client->pairs, SIZE_MAX);
    if (!open_session(client, options) ||
        !say_settings(client, options->window ? options->window : H2_CLIENT_WINDOW)) {
        h2_client_close(client);
        return err_set(err, ERR_MEMORY, "no memory for an HTTP/2 connection");
    }
    *out = client;
    return 0;
}

void h2_client_close(struct h2_client *client)
{
    if (!client)
        return;
    while (!list_is_empty(&client->streams))
        h2_client_state_forget(container_of(client->streams.next, struct h2_client_stream, link));
    nghttp2_session_del(client->session);
    buf_fini(&client->pairs);
    free(client);
}
