/* Events of the stream set what is known of the call and have it told behind the turn, so that nobody
 * closes a connection from within its own reading. */
#include "client/client_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "client/client_decode.h"
#include "client/client_share.h"
#include "client/client_state.h"
#include "client/h2_client.h"
#include "http/message.h"

enum { FIELDS_FIRST = 16, PSEUDO_FIELDS = 4 };

static struct client_call *call_of(struct h2_client_stream *stream)
{
    return container_of(stream, struct client_call, stream);
}

static void tell(struct client_call *call)
{
    loop_later(call->loop, &call->report);
}

/* --- the request -------------------------------------------------------------------------------------- */

static struct str lower(struct client_call *call, struct str name)
{
    struct str copy = arena_copy(&call->arena, name);

    for (size_t i = 0; i < copy.len; i++)
        if (copy.at[i] >= 'A' && copy.at[i] <= 'Z')
            ((char *)copy.at)[i] = (char)(copy.at[i] - 'A' + 'a');
    return copy;
}

/* What belongs to a connection of HTTP/1 (RFC 9113, 8.2.2). */
static bool is_of_h1(struct str name)
{
    static const struct str NAMES[] = {
        STR_INIT("connection"), STR_INIT("transfer-encoding"), STR_INIT("keep-alive"),
        STR_INIT("upgrade"),    STR_INIT("proxy-connection"),
    };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (str_is(name, NAMES[i]))
            return true;
    return false;
}

/* The next line of a head, without its end. */
static struct str cut_line(struct str *head)
{
    size_t     len  = str_find(*head, '\r');
    struct str line = str_make(head->at, len);

    *head = str_from(*head, len + 2 <= head->len ? len + 2 : head->len);
    return line;
}

static unsigned count_lines(struct str head)
{
    unsigned count = 0;

    while (head.len) {
        cut_line(&head);
        count++;
    }
    return count;
}

static void set_field(struct field *field, struct str name, struct str value)
{
    *field = (struct field){ .name = name, .value = value };
}

/* "GET /a HTTP/1.1" */
static void read_request_line(struct client_call *call, struct str line, struct field *pseudo)
{
    size_t     method = str_find(line, ' ');
    struct str rest   = str_from(line, method + 1);

    set_field(&pseudo[0], STR(":method"), str_make(line.at, method));
    set_field(&pseudo[1], STR(":scheme"), call->target.tls ? STR("https") : STR("http"));
    set_field(&pseudo[2], STR(":authority"), STR_NONE);
    set_field(&pseudo[3], STR(":path"), str_make(rest.at, str_find(rest, ' ')));
}

/* The call's head in HTTP/2. It is well-formed: our own gate has read it. */
static struct field *read_head(struct client_call *call, unsigned *count)
{
    struct str    head = call->head, line;
    struct field *fields =
        arena_alloc(&call->arena, (count_lines(head) + PSEUDO_FIELDS) * sizeof(*fields));

    read_request_line(call, cut_line(&head), fields);
    *count = PSEUDO_FIELDS;
    while ((line = cut_line(&head)).len) {
        size_t     colon = str_find(line, ':');
        struct str name  = lower(call, str_make(line.at, colon));
        struct str value = str_trim(str_from(line, colon + 1));

        if (str_is(name, STR("host")))
            fields[2].value = value;
        else if (!is_of_h1(name))
            set_field(&fields[(*count)++], name, value);
    }
    return fields;
}

bool client_stream_begin(struct client_call *call)
{
    unsigned                 count;
    struct field            *fields  = read_head(call, &count);
    struct h2_client_request request = {
        .fields      = fields,
        .field_count = count,
        .body        = call->body,
        .has_more    = !call->body_ended,
    };

    buf_init(&call->in, SIZE_MAX); /* the stream's window bounds it */
    if (!h2_client_request(call->conn->share->session, &call->stream, &request)) {
        client_state_fail(call, "busy", "no room for another stream on the connection");
        return false;
    }
    call->heard = call->conn->share->heard;
    client_share_touch(call->conn->share);
    return true;
}

/* --- the response -------------------------------------------------------------------------------------- */

/* The list of N fields with one more, at *FIELDS: its room doubles. */
static void add_field(struct client_call *call, struct field **fields, unsigned *count,
                      struct str name, struct str value)
{
    unsigned n = *count;

    if (n == 0 || (n >= FIELDS_FIRST && (n & (n - 1)) == 0)) {
        struct field *more = arena_alloc(&call->arena, (n ? 2 * n : FIELDS_FIRST) * sizeof(*more));

        if (n)
            memcpy(more, *fields, n * sizeof(*more));
        *fields = more;
    }
    (*fields)[n] = (struct field){
        .name  = arena_copy(&call->arena, name),
        .value = arena_copy(&call->arena, value),
        .id    = field_id_of(name),
    };
    ++*count;
}

static void on_field(struct h2_client_stream *stream, struct str name, struct str value)
{
    struct client_call *call     = call_of(stream);
    struct response    *response = &call->response;

    if (call->has_head)
        add_field(call, &response->trailers, &response->trailer_count, name, value);
    else
        add_field(call, &response->fields, &response->field_count, name, value);
}

/* The library has held them against RFC 9113, 8.1.1: there is one, and it is right. */
static uint64_t announced_length(const struct response *response)
{
    uint64_t length = UINT64_MAX;

    for (unsigned i = 0; i < response->field_count; i++)
        if (response->fields[i].id == FIELD_CONTENT_LENGTH &&
            !str_to_u64(response->fields[i].value, INT64_MAX, &length))
            return UINT64_MAX;
    return length;
}

static void on_head(struct h2_client_stream *stream)
{
    struct client_call *call = call_of(stream);

    call->response.status         = stream->status;
    call->response.version_minor  = 0;
    call->response.content_length = announced_length(&call->response);
    call->response.framing        = RESPONSE_UNTIL_CLOSE;
    call->has_head                = true;
    timer_stop(&call->first_byte, call->loop);
    if (call->decodes && !call->answers_head) {
        call->coding  = client_decode(&call->response);
        call->decoded = call->coding != NULL;
    }
    tell(call);
}

static void on_fault(struct h2_client_stream *stream, enum h2_client_fault fault)
{
    struct client_call *call = call_of(stream);

    call->stream_failed = true;
    call->stream_fault  = fault;
    tell(call);
}

/* What is not handed out yet stays where `data` says, wherever the buffer moves. */
static void on_data(struct h2_client_stream *stream, struct str piece)
{
    struct client_call *call = call_of(stream);
    size_t              left = call->data.len, end = call->given;

    buf_add_str(&call->in, piece);
    if (left)
        call->data = str_make(call->in.at + end - left, left);
    if (call->in.failed) {
        stream->fault = "there is no memory for it";
        h2_client_cancel(stream);
        on_fault(stream, H2_CLIENT_BROKEN);
    }
    tell(call);
}

static void on_end(struct h2_client_stream *stream)
{
    struct client_call *call = call_of(stream);

    call->stream_ended = true;
    tell(call);
}

/* The server takes what is written, or has all of it. */
static void on_room(struct h2_client_stream *stream)
{
    struct client_call *call = call_of(stream);

    client_state_pace(call, true);
    if (h2_client_is_sent(stream) && call->first_byte_ms && !call->has_head)
        timer_start(&call->first_byte, call->loop, call->first_byte_ms);
    tell(call);
}

const struct h2_client_events CLIENT_STREAM_EVENTS = {
    .on_field = on_field,
    .on_head  = on_head,
    .on_data  = on_data,
    .on_room  = on_room,
    .on_end   = on_end,
    .on_fault = on_fault,
};

/* --- the body ------------------------------------------------------------------------------------------ */

static ssize_t fail(struct client_call *call)
{
    bool is_broken = call->stream_fault == H2_CLIENT_BROKEN;
    char text[sizeof(call->fault_text)];

    snprintf(text, sizeof(text), is_broken ? "the response is malformed: %s" : "%s",
             call->stream.fault);
    client_state_fail_lost(call, is_broken ? "bad_response" : "closed", text);
    return CALL_FAIL;
}

static void forget_given(struct client_call *call)
{
    if (!call->given)
        return;
    buf_consume(&call->in, call->given);
    h2_client_take(&call->stream, call->given);
    call->given = 0;
    client_share_touch(call->conn->share); /* the window may open */
}

ssize_t client_stream_next(struct client_call *call)
{
    if (call->fault || !call->conn)
        return CALL_FAIL;
    forget_given(call);
    if (call->in.len) {
        call->data      = buf_str(&call->in);
        call->given     = call->in.len;
        call->body_done = call->stream_ended;
        return (ssize_t)call->given;
    }
    if (call->stream_failed)
        return fail(call);
    if (!call->stream_ended)
        return CALL_WAIT;
    call->body_done = true;
    return CALL_END;
}

size_t client_stream_write(struct client_call *call, struct str data)
{
    size_t taken = call->stream.client ? h2_client_write(&call->stream, data) : data.len;

    client_state_pace(call, false);
    client_share_touch(call->conn->share);
    return taken;
}

void client_stream_end_body(struct client_call *call)
{
    if (!call->stream.client)
        return;
    h2_client_end_body(&call->stream);
    client_share_touch(call->conn->share);
}
