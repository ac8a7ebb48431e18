#include "data/redis_pipe.h"

#include <assert.h>
#include <string.h>

#include "data/fault.h"
#include "data/redis_call.h"

enum { UNREAD_MS = 10 }; /* until an overdue answer is asked for again */

static struct redis_pipe *pipe_of(struct redis_conn *conn)
{
    return container_of(conn, struct redis_pipe, conn);
}

/* --- time limits ----------------------------------------------------------------------------------- */

/* Calls of one pipe have one limit, so the oldest is due first: one timer, looked at when it fires. */
static void watch(struct redis_pipe *pipe)
{
    struct loop       *loop = pipe->conn.place->loop;
    uint64_t           now  = loop_now_ms(loop);
    struct redis_call *first;

    if (timer_is_running(&pipe->overdue) || list_is_empty(&pipe->calls))
        return;
    first = container_of(pipe->calls.next, struct redis_call, link);
    if (first->due_ms != REDIS_NEVER)
        timer_start(&pipe->overdue, loop, first->due_ms > now ? first->due_ms - now : 0);
}

/* Whoever does not answer the oldest does not answer those behind it either: Redis has one thread. A
 * new connection tells a server that hangs from one that is back. */
static void on_overdue(struct timer *timer)
{
    struct redis_pipe *pipe = container_of(timer, struct redis_pipe, overdue);
    struct redis_call *first;
    struct fault       fault;

    if (list_is_empty(&pipe->calls))
        return;
    first = container_of(pipe->calls.next, struct redis_call, link);
    if (first->due_ms > loop_now_ms(pipe->conn.place->loop)) {
        watch(pipe);
        return;
    }
    if (redis_conn_has_unread(&pipe->conn)) { /* we are late, not the server */
        timer_start(&pipe->overdue, pipe->conn.place->loop, UNREAD_MS);
        return;
    }
    fault_set(&fault, "timeout", "Redis at %s did not answer in time", pipe->conn.place->name);
    redis_conn_fail(&pipe->conn, &fault);
}

/* --- events of the connection ------------------------------------------------------------------------ */

static void on_ready(struct redis_conn *conn)
{
    struct redis_pipe *pipe = pipe_of(conn);

    if (pipe->events->on_ready)
        pipe->events->on_ready(pipe);
}

static void take(struct buf *to, struct buf *reply)
{
    if (to->at) {
        buf_add(to, reply->at, reply->len);
        return;
    }
    *to = *reply;
    buf_init(reply, 0);
}

static void on_reply(struct redis_conn *conn, struct buf *reply)
{
    struct redis_pipe *pipe = pipe_of(conn);
    struct redis_call *call;
    struct fault       fault;

    if (list_is_empty(&pipe->calls)) {
        fault_set(&fault, "unavailable", "Redis at %s: a reply that nobody has asked for",
                  conn->place->name);
        redis_conn_fail(conn, &fault);
        return;
    }
    call = container_of(pipe->calls.next, struct redis_call, link);
    if (!call->is_orphan)
        take(&call->reply, reply);
    if (--call->replies > 0)
        return;
    list_remove(&call->link);
    pipe->count--;
    if (call->reply.failed)
        fault_set(&call->fault, "too_large", "the replies of Redis are too large");
    if (pipe->events->on_answer)
        pipe->events->on_answer(pipe, call);
    redis_call_end(call);
}

static void end_calls(struct redis_pipe *pipe, const struct fault *fault)
{
    const char  *code = fault->code;
    struct list  ended;
    struct list *node;

    list_init(&ended);
    list_splice(&ended, &pipe->calls);
    pipe->count = 0;
    while ((node = list_take_first(&ended))) {
        struct redis_call *call = container_of(node, struct redis_call, link);

        /* Only the oldest has waited for too long. */
        fault_set(&call->fault, code, "%s", fault->text);
        if (strcmp(code, "timeout") == 0)
            code = "unavailable";
        redis_call_end(call);
    }
}

static void on_down(struct redis_conn *conn, const struct fault *fault)
{
    struct redis_pipe *pipe = pipe_of(conn);

    timer_stop(&pipe->overdue, conn->place->loop);
    end_calls(pipe, fault);
    pipe->events->on_down(pipe, fault);
}

/* --- life ---------------------------------------------------------------------------------------------- */

static const struct redis_conn_events EVENTS = { on_ready, on_reply, on_down };

void redis_pipe_init(struct redis_pipe *pipe, const struct redis_place *place,
                     const struct redis_pipe_events *events)
{
    *pipe = (struct redis_pipe){ .events = events };
    redis_conn_init(&pipe->conn, place, &EVENTS);
    list_init(&pipe->calls);
    timer_init(&pipe->overdue, on_overdue);
}

bool redis_pipe_send(struct redis_pipe *pipe, struct redis_call *call)
{
    if (pipe->conn.state == REDIS_CONN_OFF)
        redis_conn_start(&pipe->conn);
    if (!redis_conn_send(&pipe->conn, buf_str(&call->request)))
        return false;
    buf_fini(&call->request);
    call->pipe = pipe;
    list_append(&pipe->calls, &call->link);
    pipe->count++;
    watch(pipe);
    return true;
}

void redis_pipe_end(struct redis_pipe *pipe, const struct fault *fault)
{
    redis_conn_close(&pipe->conn);
    timer_stop(&pipe->overdue, pipe->conn.place->loop);
    end_calls(pipe, fault);
}

void redis_pipe_close(struct redis_pipe *pipe)
{
    struct fault fault;

    list_each(node, &pipe->calls) assert(container_of(node, struct redis_call, link)->is_orphan);
    fault_set(&fault, "closed", "the connection was closed");
    redis_pipe_end(pipe, &fault);
}

void redis_pipe_fini(struct redis_pipe *pipe)
{
    redis_pipe_close(pipe);
    redis_conn_fini(&pipe->conn);
}
