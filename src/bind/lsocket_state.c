#include "bind/lsocket_state.h"

#include "bind/lerror.h"

static void stop_timers(struct way *way)
{
    timer_stop(&way->limit, way->socket->loop);
    timer_stop(&way->turn, way->socket->loop);
}

void lsocket_wake(struct way *way)
{
    stop_timers(way);
    if (way->task)
        task_wake(way->task);
}

void lsocket_close(struct lsocket *s)
{
    if (!s->open)
        return;
    s->open = false;
    stream_fini(&s->stream);
    lsocket_wake(&s->in);
    lsocket_wake(&s->out);
}

static void on_limit(struct timer *timer)
{
    struct way *way = container_of(timer, struct way, limit);

    way->timed_out = true;
    lsocket_wake(way);
}

static void on_turn(struct timer *timer)
{
    lsocket_wake(container_of(timer, struct way, turn));
}

void lsocket_init_way(struct way *way, struct lsocket *s)
{
    *way = (struct way){ .socket = s };
    timer_init(&way->limit, on_limit);
    timer_init(&way->turn, on_turn);
}

/* The task is cancelled. The other way's task, if there is one, gets `closed`. */
static void disarm(void *op)
{
    struct way *way = op;

    stop_timers(way);
    way->task = NULL;
    lsocket_close(way->socket);
}

int lsocket_wait(lua_State *L, struct way *way, uint64_t timeout_ms, task_push_fn push)
{
    way->task      = task_current(L);
    way->timed_out = false;
    if (timeout_ms != UINT64_MAX)
        timer_start(&way->limit, way->socket->loop, timeout_ms);
    return task_wait(L, way, disarm, push);
}

int lsocket_settle(struct way *way, int results)
{
    way->task        = NULL;
    way->socket->run = 0;
    stop_timers(way);
    return results;
}

int lsocket_push_busy(lua_State *L, const char *doing)
{
    return lerror_nil(L, "busy", "another task is %s this socket: one at a time", doing);
}
