#include "http/client_call.h"

#include <assert.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "base/coding.h"
#include "http/client_decode.h"
#include "http/message.h"

enum { READ_BYTES = 16 * 1024, HEAD_ROOM = 32 /* "fffffff\r\n", "\r\n", and the last chunk */ };

static const struct h1_limits LIMITS = {
    .line_bytes = CALL_LINE_BYTES_MAX,
    .head_bytes = CALL_HEAD_BYTES_MAX,
    .fields     = CALL_FIELDS_MAX,
};

/* --- faults ------------------------------------------------------------------------------------------ */

static bool is_sent(const struct client_call *call)
{
    return call->sent_bytes == call->head.len + call->body.len && call->out.len == 0 &&
           call->body_ended;
}

/* Whether the server's kernel has acknowledged what we sent. If not, its FIN crossed our request,
 * which nobody has read (and a reset will answer). */
static bool was_received(const struct client_conn *conn)
{
    int unsent = 0;

    return ioctl(conn->stream.fd, SIOCOUTQ, &unsent) == 0 && unsent == 0;
}

/* A kept connection may be closed by the server just as we write to it. Its end before any byte of a
 * response says so; whether the request was read, a FIN alone does not. */
static enum call_sent judge_sent(const struct client_call *call)
{
    const struct client_conn *conn = call->conn;

    if (!conn || (call->sent_bytes == 0 && call->out.len == 0))
        return CALL_UNSENT;
    if (conn->served == 0 || call->has_head || conn->input.len)
        return CALL_SENT;
    return was_received(conn) ? CALL_STALE : CALL_UNSENT;
}

static void stop_timers(struct client_call *call)
{
    timer_stop(&call->limit, call->loop);
    timer_stop(&call->first_byte, call->loop);
}

/* The connection goes at once: nothing more is to be had of it. */
static void drop_conn(struct client_call *call)
{
    struct client_conn *conn = call->conn;

    call->conn = NULL;
    call->data = STR_NONE;
    if (conn)
        client_give(conn, false);
}

void client_call_fail(struct client_call *call, const char *fault, const char *text)
{
    if (call->fault || call->ended)
        return;
    call->sent  = judge_sent(call);
    call->fault = fault;
    snprintf(call->fault_text, sizeof(call->fault_text), "%s", text);
    stop_timers(call);
    client_unwant(&call->want);
    drop_conn(call);
}

static void on_limit(struct timer *timer)
{
    struct client_call *call = container_of(timer, struct client_call, limit);

    client_call_fail(call, "timeout",
                     call->has_head    ? "the response did not end in time"
                     : call->connected ? "no response came in time"
                                       : "no connection was to be had in time");
    call->on_event(call);
}

static void on_first_byte_limit(struct timer *timer)
{
    struct client_call *call = container_of(timer, struct client_call, first_byte);

    client_call_fail(call, "timeout", "the response did not begin in time");
    call->on_event(call);
}

/* --- writing ---------------------------------------------------------------------------------------------- */

/* Head and body in one call where they fit. */
static ssize_t write_whole(struct client_call *call)
{
    struct str head =
        call->sent_bytes < call->head.len ? str_from(call->head, call->sent_bytes) : STR_NONE;
    size_t       past  = head.len ? 0 : call->sent_bytes - call->head.len;
    struct str   body  = str_from(call->body, past);
    struct iovec iov[] = { { (void *)head.at, head.len }, { (void *)body.at, body.len } };

    if (!head.len)
        return stream_writev(&call->conn->stream, &iov[1], 1);
    return stream_writev(&call->conn->stream, iov, body.len ? 2 : 1);
}

static ssize_t write_some(struct client_call *call)
{
    struct iovec iov = { call->out.at, call->out.len };
    ssize_t      n;

    if (call->sent_bytes < call->head.len + call->body.len) {
        n = write_whole(call);
        if (n > 0)
            call->sent_bytes += (size_t)n;
        return n;
    }
    n = stream_writev(&call->conn->stream, &iov, 1);
    if (n > 0)
        buf_consume(&call->out, (size_t)n);
    return n;
}

static bool has_to_write(const struct client_call *call)
{
    return call->sent_bytes < call->head.len + call->body.len || call->out.len > 0;
}

/* The server has taken bytes, or there is nothing that it could take. Waiting for more of the body is
 * not its fault. */
static void pace(struct client_call *call, bool wrote)
{
    if (!call->paces || !call->conn || call->has_head || call->body_kind == CALL_BODY_WHOLE)
        return;
    if (!has_to_write(call) && !call->body_ended)
        timer_stop(&call->limit, call->loop);
    else if (wrote || !timer_is_running(&call->limit))
        timer_start(&call->limit, call->loop, call->total_ms);
}

/* A server may answer and close before it has read all; so a failure here is none before reading has
 * found out. */
static void flush(struct client_call *call)
{
    bool wrote = false;

    while (call->conn && !call->send_failed && has_to_write(call)) {
        ssize_t n = write_some(call);

        if (n == STREAM_WAIT)
            break;
        wrote |= n > 0;
        if (n != STREAM_FAIL)
            continue;
        call->send_failed = true;
        loop_later(call->loop, &call->report);
    }
    pace(call, wrote);
    if (call->conn && is_sent(call) && call->first_byte_ms && !call->has_head &&
        !timer_is_running(&call->first_byte))
        timer_start(&call->first_byte, call->loop, call->first_byte_ms);
}

static size_t take_plain(struct client_call *call, struct str data)
{
    buf_add_str(&call->out, data);
    call->body_left -= data.len;
    call->body_ended = call->body_left == 0;
    return data.len;
}

static size_t take_chunk(struct client_call *call, struct str data)
{
    buf_printf(&call->out, "%zx\r\n", data.len);
    buf_add_str(&call->out, data);
    buf_add_str(&call->out, STR("\r\n"));
    return data.len;
}

size_t client_call_write(struct client_call *call, struct str data)
{
    size_t room = CALL_OUT_BYTES_MAX - call->out.len, taken;

    if (!call->conn || call->send_failed)
        return data.len;
    if (call->out.len >= CALL_OUT_BYTES_MAX / 2)
        return 0;
    if (data.len > room)
        data.len = room;
    if (call->body_kind == CALL_BODY_LENGTH && data.len > call->body_left) {
        client_call_fail(call, "closed", "the request's body is longer than was announced");
        return data.len;
    }
    if (!data.len)
        return 0;
    taken = call->body_kind == CALL_BODY_LENGTH ? take_plain(call, data) : take_chunk(call, data);
    if (call->out.failed) {
        client_call_fail(call, "busy", "no memory for the request's body");
        return taken;
    }
    flush(call);
    return taken;
}

bool client_call_end_body(struct client_call *call)
{
    if (!call->conn || call->body_ended)
        return true;
    if (call->body_kind == CALL_BODY_LENGTH && call->body_left) {
        client_call_fail(call, "closed", "the request's body is shorter than was announced");
        return false;
    }
    if (call->body_kind == CALL_BODY_CHUNKED)
        buf_add_str(&call->out, STR("0\r\n\r\n"));
    call->body_ended = true;
    flush(call);
    return true;
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static struct str unread(const struct client_conn *conn)
{
    return str_from(buf_str(&conn->input), conn->input_at);
}

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

    client_call_fail(call, call->conn->input.len && !call->has_head ? "bad_response" : "closed",
                     how == STREAM_FAIL && !call->has_head
                         ? "the server reset the connection before it answered"
                         : text);
}

static void refuse(struct client_call *call, const struct h1_fault *fault)
{
    char text[sizeof(call->fault_text)];

    snprintf(text, sizeof(text), "the response is malformed: %s", fault->reason);
    client_call_fail(call, "bad_response", text);
}

/* The body was read to its end. The connection goes back before anyone asks for more. */
static void end(struct client_call *call)
{
    struct client_conn *conn = call->conn;
    bool                at_rest;

    call->ended = true;
    call->conn  = NULL;
    stop_timers(call);
    if (!conn)
        return;
    at_rest =
        is_sent(call) && !call->send_failed && call->response.keep_alive && unread(conn).len == 0;
    client_give(conn, at_rest);
}

static void begin_body(struct client_call *call)
{
    timer_stop(&call->first_byte, call->loop);
    call->has_head  = true;
    call->body_done = call->response.framing == RESPONSE_NO_BODY ||
                      (call->response.framing == RESPONSE_LENGTH && !call->response.content_length);
    if (call->body_done) {
        end(call);
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
    struct str      head  = str_make(unread(call->conn).at, call->gate.scanned);
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
        client_call_fail(call, "bad_response",
                         call->response.status == 101
                             ? "the server switched protocols, which nobody asked for"
                             : "too many interim responses");
    }
}

/* What lies in the input, as far as it makes heads. False: more bytes are needed. */
static bool take_heads(struct client_call *call)
{
    while (!call->has_head && !call->fault) {
        struct str      bytes   = unread(call->conn);
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

static void read_head(struct client_call *call)
{
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
    struct str          bytes = unread(conn);
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
    ssize_t n = fill(call->conn);

    if (n == STREAM_WAIT)
        return CALL_WAIT;
    if (n >= 0)
        return n;
    if (n == STREAM_FIN && call->response.framing == RESPONSE_UNTIL_CLOSE) {
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
        end(call);
    if (n <= 0)
        return n;
    if ((size_t)n > room)
        n = (ssize_t)room;
    memcpy(to, call->data.at, (size_t)n);
    call->data = str_from(call->data, (size_t)n);
    if (!call->data.len && call->body_done)
        end(call);
    return n;
}

static ssize_t fail_decoding(struct client_call *call)
{
    client_call_fail(call, "bad_response", "the body is not what its Content-Encoding says");
    return CALL_FAIL;
}

/* The coded data has ended: so must the body. */
static ssize_t end_decoded(struct client_call *call)
{
    ssize_t n = next_data(call);

    if (n > 0)
        return fail_decoding(call);
    if (n == CALL_END)
        end(call);
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

ssize_t client_call_read(struct client_call *call, char *to, size_t room)
{
    if (call->fault)
        return CALL_FAIL;
    if (call->ended)
        return CALL_END;
    return call->coding ? read_decoded(call, to, room) : read_plain(call, to, room);
}

/* --- events --------------------------------------------------------------------------------------------- */

static void on_conn_event(struct client_conn *conn, void *arg)
{
    struct client_call *call = arg;

    flush(call);
    if (!call->has_head)
        read_head(call);
    call->on_event(call);
}

static void go(struct client_call *call)
{
    call->conn           = call->want.conn;
    call->want.conn      = NULL;
    call->connected      = true;
    call->conn->on_event = on_conn_event;
    call->conn->arg      = call;
    flush(call);
}

static void fail_wanting(struct client_call *call)
{
    client_call_fail(call, call->want.fault, call->want.err.text);
}

static void on_wanted(struct client_want *want)
{
    struct client_call *call = container_of(want, struct client_call, want);

    if (want->conn)
        go(call);
    else
        fail_wanting(call);
    call->on_event(call);
}

static void on_report(struct later *later)
{
    struct client_call *call = container_of(later, struct client_call, report);

    if (call->send_failed && !call->has_head)
        read_head(call);
    call->on_event(call);
}

/* --- life ------------------------------------------------------------------------------------------------- */

static void copy_texts(struct client_call *call)
{
    struct client_target *target = &call->target;

    call->head   = arena_copy(&call->arena, call->head);
    target->key  = arena_copy(&call->arena, target->key);
    target->host = arena_copy(&call->arena, target->host);
    if (target->path)
        target->path = arena_copy(&call->arena, str_of(target->path)).at;
}

void client_call_start(struct client_call *call, struct http_client *client, struct loop *loop,
                       struct arena_pool *arenas)
{
    int what;

    call->started = true;
    call->client  = client;
    call->loop    = loop;
    arena_init(&call->arena, arenas);
    later_init(&call->report, on_report);
    timer_init(&call->limit, on_limit);
    timer_init(&call->first_byte, on_first_byte_limit);
    buf_init(&call->out, CALL_OUT_BYTES_MAX + HEAD_ROOM);
    h1_gate_init_response(&call->gate);
    copy_texts(call);
    call->body_ended = call->body_kind == CALL_BODY_WHOLE ||
                       (call->body_kind == CALL_BODY_LENGTH && !call->body_left);
    call->want.done = on_wanted;
    if (call->total_ms)
        timer_start(&call->limit, loop, call->total_ms);
    what = client_want(&call->want, client, &call->target);
    if (what == 0)
        return;
    if (what > 0)
        go(call);
    else
        fail_wanting(call);
    loop_later(loop, &call->report);
}

void client_call_limit(struct client_call *call, uint64_t ms)
{
    timer_stop(&call->limit, call->loop);
    if (ms && !call->ended && !call->fault)
        timer_start(&call->limit, call->loop, ms);
}

void client_call_close(struct client_call *call)
{
    if (!call->started)
        return;
    call->started = false;
    if (!call->ended)
        client_call_fail(call, "closed", "the call was closed");
    later_cancel(&call->report);
    stop_timers(call);
    coding_free(call->coding);
    call->coding = NULL;
    buf_fini(&call->out);
    arena_reset(&call->arena);
}
