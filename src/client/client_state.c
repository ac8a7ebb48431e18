#include "client/client_state.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "client/client_share.h"
#include "client/h2_client.h"
#include "net/tls.h"

/* --- faults ------------------------------------------------------------------------------------------ */

static bool is_shared(const struct client_call *call)
{
    return call->conn && call->conn->share;
}

bool client_state_is_sent(const struct client_call *call)
{
    if (is_shared(call))
        return h2_client_is_sent(&call->stream);
    return call->sent_bytes == call->head.len + call->body.len && call->out.len == 0 &&
           call->body_ended;
}

/* Whether the server's FIN crossed our request: its kernel acknowledged none of it, so nobody has read
 * it (and a reset will answer, which is EPIPE behind a FIN). A reset alone says nothing: a server that
 * breaks off after it has read and done everything may owe us the acknowledgement of all. */
static bool was_crossed(const struct client_call *call)
{
    const struct stream *stream   = &call->conn->stream;
    int                  unproven = 0;

    return (!stream->error || stream->error == EPIPE) &&
           ioctl(stream->fd, SIOCOUTQ, &unproven) == 0 && (size_t)unproven == call->sent_bytes;
}

/* The end of a connection that had served others, without a word of what was read. */
static bool is_stale_stream(const struct client_call *call)
{
    return call->stream_failed && call->stream_fault == H2_CLIENT_LOST && call->conn->served > 0 &&
           !call->has_head;
}

static enum call_sent judge_stream(const struct client_call *call)
{
    if (!h2_client_is_begun(&call->stream) ||
        (call->stream_failed && call->stream_fault == H2_CLIENT_UNSEEN))
        return CALL_UNSENT;
    if (call->stream_failed && call->stream_fault == H2_CLIENT_H1)
        return CALL_FOR_H1;
    return is_stale_stream(call) ? CALL_STALE : CALL_SENT;
}

/* A kept connection may be closed by the server just as we write to it. Its end before any byte of a
 * response says so; whether the request was read, a FIN alone does not. */
static enum call_sent judge_sent(const struct client_call *call)
{
    const struct client_conn *conn = call->conn;

    if (is_shared(call))
        return judge_stream(call);
    if (!conn || (call->sent_bytes == 0 && call->out.len == 0))
        return CALL_UNSENT;
    if (conn->served == 0 || call->has_head || conn->input.len)
        return CALL_SENT;
    return was_crossed(call) ? CALL_UNSENT : CALL_STALE;
}

/* Something of the request waits for the server. */
static bool has_to_write(const struct client_call *call)
{
    if (is_shared(call))
        return call->stream.client && (call->stream.body.len || call->stream.out.len);
    return call->sent_bytes < call->head.len + call->body.len || call->out.len > 0;
}

/* Waiting for more of the body is not the server's fault. */
void client_state_pace(struct client_call *call, bool wrote)
{
    if (!call->paces || !call->conn || call->has_head || call->body_kind == CALL_BODY_WHOLE)
        return;
    if (!has_to_write(call) && !call->body_ended)
        timer_stop(&call->limit, call->loop);
    else if (wrote || !timer_is_running(&call->limit))
        timer_start(&call->limit, call->loop, call->total_ms);
}

void client_state_stop_timers(struct client_call *call)
{
    timer_stop(&call->limit, call->loop);
    timer_stop(&call->first_byte, call->loop);
}

/* The connection goes at once: nothing more is to be had of it. One that is shared goes on without us. */
static void drop_conn(struct client_call *call)
{
    struct client_conn *conn = call->conn;

    call->conn = NULL;
    call->data = STR_NONE;
    if (conn && conn->share) {
        h2_client_cancel(&call->stream);
        client_share_touch(conn->share);
    }
    if (conn)
        client_give(conn, false);
}

void client_state_fail(struct client_call *call, const char *fault, const char *text)
{
    if (call->fault || call->ended)
        return;
    call->sent  = judge_sent(call);
    call->fault = fault;
    snprintf(call->fault_text, sizeof(call->fault_text), "%s", text);
    client_state_stop_timers(call);
    client_want_stop(&call->want);
    drop_conn(call);
}

void client_state_fail_late(struct client_call *call, const char *text)
{
    if (is_shared(call) && call->conn->share->heard == call->heard)
        call->conn->share->is_left = true;
    client_state_fail(call, "timeout", text);
}

void client_state_fail_lost(struct client_call *call, const char *fault, const char *text)
{
    const struct stream *stream = &call->conn->stream;

    if (!call->has_head && tls_fault_kind(stream) == TLS_REFUSED)
        client_state_fail(call, "tls", tls_fault(stream));
    else
        client_state_fail(call, fault, text);
}

struct str client_state_unread(const struct client_conn *conn)
{
    return str_from(buf_str(&conn->input), conn->input_at);
}

/* The body was read to its end. The connection goes back before anyone asks for more. */
void client_state_end(struct client_call *call)
{
    struct client_conn *conn = call->conn;
    bool                at_rest;

    call->ended = true;
    call->conn  = NULL;
    client_state_stop_timers(call);
    if (!conn)
        return;
    at_rest = !conn->share && client_state_is_sent(call) && !call->send_failed &&
              call->response.keep_alive && client_state_unread(conn).len == 0;
    client_give(conn, at_rest);
}
