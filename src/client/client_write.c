#include "client/client_write.h"

#include <sys/uio.h>

#include "client/client_state.h"
#include "client/client_stream.h"

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

/* A server may answer and close before it has read all; so a failure here is none before reading has
 * found out. */
void client_write_flush(struct client_call *call)
{
    bool wrote = false;

    if (call->conn && call->conn->share) /* it has a turn of its own */
        return;
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
    client_state_pace(call, wrote);
    if (call->conn && client_state_is_sent(call) && call->first_byte_ms && !call->has_head &&
        !timer_is_running(&call->first_byte))
        timer_start(&call->first_byte, call->loop, call->first_byte_ms);
}

static size_t take_for_stream(struct client_call *call, struct str data)
{
    size_t taken = client_stream_write(call, data);

    if (call->body_kind == CALL_BODY_LENGTH) {
        call->body_left -= taken;
        if (call->body_left == 0)
            client_write_end(call);
    }
    return taken;
}

bool client_write_has_room(const struct client_call *call)
{
    size_t waits = call->stream.client ? call->stream.out.len : call->out.len;

    return !call->conn || call->send_failed || waits < CALL_OUT_BYTES_MAX / 2;
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

size_t client_write_body(struct client_call *call, struct str data)
{
    size_t room = CALL_OUT_BYTES_MAX - call->out.len, taken;

    if (!call->conn || call->send_failed)
        return data.len;
    if (call->out.len >= CALL_OUT_BYTES_MAX / 2)
        return 0;
    if (data.len > room)
        data.len = room;
    if (call->body_kind == CALL_BODY_LENGTH && data.len > call->body_left) {
        client_state_fail(call, "closed", "the request's body is longer than was announced");
        return data.len;
    }
    if (!data.len)
        return 0;
    if (call->conn->share)
        return take_for_stream(call, data);
    taken = call->body_kind == CALL_BODY_LENGTH ? take_plain(call, data) : take_chunk(call, data);
    if (call->out.failed) {
        client_state_fail(call, "busy", "no memory for the request's body");
        return taken;
    }
    client_write_flush(call);
    return taken;
}

bool client_write_end(struct client_call *call)
{
    if (!call->conn || call->body_ended)
        return true;
    if (call->body_kind == CALL_BODY_LENGTH && call->body_left) {
        client_state_fail(call, "closed", "the request's body is shorter than was announced");
        return false;
    }
    if (call->body_kind == CALL_BODY_CHUNKED && !call->conn->share)
        buf_add_str(&call->out, STR("0\r\n\r\n"));
    call->body_ended = true;
    if (call->conn->share)
        client_stream_end_body(call);
    client_write_flush(call);
    return true;
}
