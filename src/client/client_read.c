#include "client/client_read.h"

#include <stdio.h>

#include "base/coding.h"
#include "client/client_decode.h"
#include "client/client_state.h"
#include "client/client_stream.h"

enum {
    READ_BYTES     = 16 * 1024,
    TURN_BYTES_MAX = 128 * 1024, /* then others have a turn: a body may decode to nothing */
};

static const struct h1_limits LIMITS = {
    .line_bytes = CALL_LINE_BYTES_MAX,
    .head_bytes = CALL_HEAD_BYTES_MAX,
    .fields     = CALL_FIELDS_MAX,
};

/* Bytes from the socket behind those that are unread. What stream_read() says. */
static ssize_t fill(struct client_conn *conn)
{
    struct buf *input = &conn->input;
    char       *to;
    ssize_t     n;

    if (conn->input_at) {
        buf_consume(input, conn->input_at);
        conn->input_at = 0;
    }
    to = buf_reserve(input, READ_BYTES);
    if (!to)
        return STREAM_FAIL;
    n = stream_read(&conn->stream, to, READ_BYTES);
    if (n > 0)
        input->len += (size_t)n;
    return n;
}

static void fail_closed(struct client_call *call, ssize_t how)
{
    const char *text = call->has_head ? "the connection ended in the middle of the response"
                                      : "the server closed the connection without a response";

    client_state_fail_lost(
        call, call->conn->input.len && !call->has_head ? "bad_response" : "closed",
        how == STREAM_FAIL && !call->has_head ? "the server reset the connection before it answered"
                                              : text);
}

static void refuse(struct client_call *call, const struct h1_fault *fault)
{
    char text[sizeof(call->fault_text)];

    snprintf(text, sizeof(text), "the response is malformed: %s", fault->reason);
    client_state_fail(call, "bad_response", text);
}

static void begin_body(struct client_call *call)
{
    timer_stop(&call->first_byte, call->loop);
    call->has_head  = true;
    call->body_done = call->response.framing == RESPONSE_NO_BODY ||
                      (call->response.framing == RESPONSE_LENGTH && !call->response.content_length);
    if (call->body_done) {
        client_state_end(call);
        return;
    }
    if (call->decodes) {
        call->coding  = client_decode(&call->response);
        call->decoded = call->coding != NULL;
    }
}

/* A complete head of GATE.scanned bytes. */
static void take_head(struct client_call *call)
{
    struct str      head  = str_make(client_state_unread(call->conn).at, call->gate.scanned);
    struct h1_fault fault = { 0 };

    if (!h1_parse_response_head(&call->arena, head, call->gate.fields, call->answers_head,
                                &call->response, &call->parse, &fault)) {
        refuse(call, &fault);
        return;
    }
    call->conn->input_at += head.len;
    h1_gate_init_response(&call->gate);
    if (call->response.status >= 200) {
        begin_body(call);
    } else if (call->response.status == 101 || ++call->interims > CALL_INTERIM_MAX) {
        client_state_fail(call, "bad_response",
                          call->response.status == 101
                              ? "the server switched protocols, which nobody asked for"
                              : "too many interim responses");
    }
}

/* What lies in the input, as far as it makes heads. False: more bytes are needed. */
static bool take_heads(struct client_call *call)
{
    while (!call->has_head && !call->fault) {
        struct str      bytes   = client_state_unread(call->conn);
        enum h1_reading reading = h1_gate_head(&call->gate, &LIMITS, bytes.at, bytes.len);

        if (!bytes.len || reading == H1_MORE)
            return false;
        if (reading == H1_REFUSED)
            refuse(call, &call->gate.fault);
        else
            take_head(call);
    }
    return true;
}

void client_read_head(struct client_call *call)
{
    if (call->conn && call->conn->share) /* it is told */
        return;
    while (call->conn && !take_heads(call)) {
        ssize_t n = fill(call->conn);

        if (n == STREAM_WAIT)
            return;
        if (n < 0) {
            fail_closed(call, n);
            return;
        }
        timer_stop(&call->first_byte, call->loop);
    }
}

/* The next of the body's elements that lie in the input. False: more bytes are needed. */
static bool take_body(struct client_call *call)
{
    struct client_conn *conn  = call->conn;
    struct str          bytes = client_state_unread(conn);
    size_t              used  = 0;
    enum h1_reading     reading;

    if (!bytes.len)
        return false;
    reading = h1_parse_response_body(&call->arena, &call->parse, &LIMITS, bytes.at, bytes.len,
                                     &used, &call->data, &call->response);
    conn->input_at += used;
    if (reading == H1_REFUSED)
        refuse(call, &call->parse.gate.fault);
    call->body_done = reading == H1_DONE;
    return used > 0 || reading != H1_MORE;
}

static ssize_t fill_body(struct client_call *call)
{
    ssize_t n;

    if (call->turn_bytes >= TURN_BYTES_MAX) {
        loop_later(call->loop, &call->report);
        return CALL_WAIT;
    }
    n = fill(call->conn);
    if (n == STREAM_WAIT)
        return CALL_WAIT;
    if (n >= 0) {
        call->turn_bytes += (size_t)n;
        return n;
    }
    if (n == STREAM_FIN && call->response.framing == RESPONSE_UNTIL_CLOSE &&
        !call->conn->stream.cut) {
        call->body_done = true;
        return CALL_END;
    }
    fail_closed(call, n);
    return CALL_FAIL;
}

/* Sees to it that `data` holds something: bytes, CALL_WAIT, CALL_END or CALL_FAIL. */
static ssize_t next_data(struct client_call *call)
{
    while (!call->data.len && !call->body_done) {
        ssize_t n;

        if (call->fault)
            return CALL_FAIL;
        if (call->conn->share)
            return client_stream_next(call);
        if (take_body(call))
            continue;
        n = fill_body(call);
        if (n == CALL_WAIT || n == CALL_FAIL)
            return n;
    }
    return (ssize_t)call->data.len;
}

static ssize_t read_plain(struct client_call *call, char *to, size_t room)
{
    ssize_t n = next_data(call);

    if (n == CALL_END)
        client_state_end(call);
    if (n <= 0)
        return n;
    if ((size_t)n > room)
        n = (ssize_t)room;
    memcpy(to, call->data.at, (size_t)n);
    call->data = str_from(call->data, (size_t)n);
    if (!call->data.len && call->body_done)
        client_state_end(call);
    return n;
}

static ssize_t fail_decoding(struct client_call *call)
{
    client_state_fail(call, "bad_response", "the body is not what its Content-Encoding says");
    return CALL_FAIL;
}

/* The coded data has ended: so must the body. */
static ssize_t end_decoded(struct client_call *call)
{
    ssize_t n = next_data(call);

    if (n > 0)
        return fail_decoding(call);
    if (n == CALL_END)
        client_state_end(call);
    return n;
}

static ssize_t read_decoded(struct client_call *call, char *to, size_t room)
{
    size_t made = 0;

    while (!made && !call->coding_done) {
        ssize_t          n = call->coding_full ? (ssize_t)call->data.len : next_data(call);
        enum coding_step step;

        if (n < 0)
            return n;
        if (n == 0 && !call->coding_begun) /* an empty body has no coding */
            return end_decoded(call);
        call->coding_begun = true;
        step              = coding_run(call->coding, &call->data, call->body_done, to, room, &made);
        call->coding_full = step == CODING_FULL;
        call->coding_done = step == CODING_DONE;
        if (step == CODING_BROKEN && !made)
            return fail_decoding(call);
    }
    return made ? (ssize_t)made : end_decoded(call);
}

ssize_t client_read_body(struct client_call *call, char *to, size_t room)
{
    if (call->fault)
        return CALL_FAIL;
    if (call->ended)
        return CALL_END;
    return call->coding ? read_decoded(call, to, room) : read_plain(call, to, room);
}
