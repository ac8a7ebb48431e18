#include "bind/lsync.h"

#include <stdbool.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/list.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ltask.h"
#include "vm/task.h"
#include "vm/waitq.h"

#define EVENT_METATABLE     "srv.Event"
#define CHANNEL_METATABLE   "srv.Channel"
#define SEMAPHORE_METATABLE "srv.Semaphore"
#define MUTEX_METATABLE     "srv.Mutex"

static int push_true(lua_State *L, void *op)
{
    lua_pushboolean(L, true);
    return 1;
}

/* --- events ------------------------------------------------------------------------------------- */

struct levent {
    bool         is_set;
    struct waitq waiters;
};

/* event() */
static int levent_new(lua_State *L)
{
    struct levent *event = lclass_new(L, EVENT_METATABLE, sizeof(*event));

    event->is_set = false;
    waitq_init(&event->waiters);
    return 1;
}

static struct levent *check_event(lua_State *L)
{
    return luaL_checkudata(L, 1, EVENT_METATABLE);
}

/* event:set() -> event */
static int levent_set(lua_State *L)
{
    struct levent *event = check_event(L);

    event->is_set = true;
    waitq_wake_all(&event->waiters);
    lua_settop(L, 1);
    return 1;
}

/* event:clear() -> event */
static int levent_clear(lua_State *L)
{
    check_event(L)->is_set = false;
    lua_settop(L, 1);
    return 1;
}

/* event:is_set() -> boolean */
static int levent_is_set(lua_State *L)
{
    lua_pushboolean(L, check_event(L)->is_set);
    return 1;
}

/* event:wait([seconds]) -> true | nil, err */
static int levent_wait(lua_State *L)
{
    struct levent *event = check_event(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (event->is_set)
        return push_true(L, NULL);
    return waitq_wait(L, &event->waiters, push_true, ltask_timeout_ms(L, 2), ltask_push_timeout,
                      NULL, NULL);
}

/* --- channels -------------------------------------------------------------------------------------- */

/* Its environment is the buffer: values at first..last. A value that a woken receiver will take stays
 * in it until then, so that nothing is lost if the receiver is cancelled meanwhile. */
struct lchannel {
    int          room; /* values that may wait without a receiver */
    int          first, last;
    int          promised; /* values in the buffer for receivers that were woken */
    bool         closed;
    struct waitq receivers;
    struct waitq senders; /* the value is at 2 of each one's stack */
};

/* channel(n) */
static int lchannel_new(lua_State *L)
{
    int              room    = (int)luaL_optinteger(L, 1, 0);
    struct lchannel *channel = lclass_new(L, CHANNEL_METATABLE, sizeof(*channel));

    *channel = (struct lchannel){ .room = room, .first = 1 };
    waitq_init(&channel->receivers);
    waitq_init(&channel->senders);
    lua_newtable(L);
    lua_setfenv(L, -2);
    return 1;
}

static struct lchannel *check_channel(lua_State *L)
{
    return luaL_checkudata(L, 1, CHANNEL_METATABLE);
}

static int count_of(const struct lchannel *channel)
{
    return channel->last - channel->first + 1;
}

/* Values that no woken receiver is about to take. */
static int free_values(const struct lchannel *channel)
{
    return count_of(channel) - channel->promised;
}

/* Appends the value on top to the buffer of the channel at 1. */
static void put_value(lua_State *L, struct lchannel *channel)
{
    lua_getfenv(L, 1);
    lua_insert(L, -2);
    lua_rawseti(L, -2, channel->last + 1);
    lua_pop(L, 1);
    channel->last++;
}

/* Pushes the first value of the buffer of the channel at 1. */
static void take_value(lua_State *L, struct lchannel *channel)
{
    lua_getfenv(L, 1);
    lua_rawgeti(L, -1, channel->first);
    lua_pushnil(L);
    lua_rawseti(L, -3, channel->first);
    lua_remove(L, -2);
    channel->first++;
    if (count_of(channel) == 0) { /* small numbers keep the table an array */
        channel->first = 1;
        channel->last  = 0;
    }
}

enum { PROMISED = 1, ADMITTED = 1 }; /* a waiter's word */

static void promise_value(struct lchannel *channel)
{
    struct waiter *receiver = waitq_first(&channel->receivers);

    if (!receiver || free_values(channel) <= 0)
        return;
    receiver->word = PROMISED;
    channel->promised++;
    waitq_wake(receiver);
}

/* A receiver that was promised a value does not come for it: the next one may. */
static void pass_promise(struct waiter *waiter)
{
    struct lchannel *channel = waiter->owner;

    if (waiter->word != PROMISED)
        return;
    channel->promised--;
    promise_value(channel);
}

/* The first waiting sender's value moves into the buffer. Protected. */
static void admit_sender(lua_State *L, struct lchannel *channel)
{
    struct waiter *sender = waitq_first(&channel->senders);

    if (!sender)
        return;
    luaL_checkstack(L, 3, NULL);
    lua_pushvalue(sender->L, 2);
    lua_xmove(sender->L, L, 1);
    put_value(L, channel);
    sender->word = ADMITTED;
    waitq_wake(sender);
}

static int push_closed(lua_State *L)
{
    return lerror_nil(L, "closed", "the channel is closed");
}

static int push_sent(lua_State *L, void *op)
{
    struct waiter *waiter = op;

    return waiter->word == ADMITTED ? push_true(L, op) : push_closed(L);
}

/* channel:send(v, [seconds]) -> true | nil, err */
static int lchannel_send(lua_State *L)
{
    struct lchannel *channel = check_channel(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    luaL_argcheck(L, !lua_isnoneornil(L, 2), 2, "nil cannot be sent: it would read as the end");
    if (channel->closed)
        return push_closed(L);
    if (!waitq_is_empty(&channel->receivers) || count_of(channel) < channel->room) {
        lua_pushvalue(L, 2);
        put_value(L, channel);
        promise_value(channel);
        return push_true(L, NULL);
    }
    return waitq_wait(L, &channel->senders, push_sent, ltask_timeout_ms(L, 3), ltask_push_timeout,
                      NULL, channel);
}

/* A value may be there for one who was woken by close(), too: its promised taker was cancelled. */
static int push_received(lua_State *L, void *op)
{
    struct waiter   *waiter   = op;
    struct lchannel *channel  = waiter->owner;
    bool             promised = waiter->word == PROMISED;

    if (!promised && free_values(channel) <= 0)
        return push_closed(L);
    take_value(L, channel);
    channel->promised -= promised;
    return 1;
}

/* channel:receive([seconds]) -> v | nil, err */
static int lchannel_receive(lua_State *L)
{
    struct lchannel *channel = check_channel(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (free_values(channel) <= 0)
        admit_sender(L, channel);
    if (free_values(channel) > 0) {
        take_value(L, channel);
        if (count_of(channel) < channel->room)
            admit_sender(L, channel);
        return 1;
    }
    if (channel->closed)
        return push_closed(L);
    return waitq_wait(L, &channel->receivers, push_received, ltask_timeout_ms(L, 2),
                      ltask_push_timeout, pass_promise, channel);
}

/* channel:close() -> channel: what is buffered can still be received; idempotent */
static int lchannel_close(lua_State *L)
{
    struct lchannel *channel = check_channel(L);

    channel->closed = true;
    waitq_wake_all(&channel->receivers);
    waitq_wake_all(&channel->senders);
    lua_settop(L, 1);
    return 1;
}

/* --- semaphores and mutexes --------------------------------------------------------------------------- */

struct lsemaphore {
    int          free;
    bool         is_mutex;
    struct waitq waiters;
    struct list  permits; /* given out, oldest first */
};

/* One permit in a task's hands. It goes from hand to hand, so passing it on needs no memory. */
struct permit {
    struct held        held;
    struct list        given; /* in semaphore->permits */
    struct lsemaphore *semaphore;
    struct task       *holder;
};

static int new_semaphore(lua_State *L, int count, bool is_mutex)
{
    struct lsemaphore *semaphore =
        lclass_new(L, is_mutex ? MUTEX_METATABLE : SEMAPHORE_METATABLE, sizeof(*semaphore));

    semaphore->free     = count;
    semaphore->is_mutex = is_mutex;
    waitq_init(&semaphore->waiters);
    list_init(&semaphore->permits);
    return 1;
}

/* semaphore(n) */
static int lsemaphore_new(lua_State *L)
{
    return new_semaphore(L, (int)luaL_checkinteger(L, 1), false);
}

/* mutex() */
static int lmutex_new(lua_State *L)
{
    return new_semaphore(L, 1, true);
}

static struct lsemaphore *check_semaphore(lua_State *L)
{
    return luaL_checkudata(L, 1, SEMAPHORE_METATABLE);
}

static struct lsemaphore *check_mutex(lua_State *L)
{
    return luaL_checkudata(L, 1, MUTEX_METATABLE);
}

static void hand_to(struct permit *permit, struct task *holder)
{
    permit->holder = holder;
    task_hold(holder, &permit->held);
    list_append(&permit->semaphore->permits, &permit->given);
}

/* To the first who waits, or back. The permit is in nobody's hands. */
static void pass_on(struct permit *permit)
{
    struct lsemaphore *semaphore = permit->semaphore;
    struct waiter     *next      = waitq_first(&semaphore->waiters);

    list_remove(&permit->given);
    if (next) {
        hand_to(permit, next->task);
        waitq_wake(next);
        return;
    }
    semaphore->free++;
    free(permit);
}

static void on_holder_end(struct held *held)
{
    pass_on(container_of(held, struct permit, held));
}

static void give_permit(lua_State *L, struct lsemaphore *semaphore, struct task *task)
{
    struct permit *permit = malloc(sizeof(*permit));

    if (!permit)
        luaL_error(L, "not enough memory");
    *permit              = (struct permit){ .semaphore = semaphore };
    permit->held.release = on_holder_end;
    list_init(&permit->given);
    semaphore->free--;
    hand_to(permit, task);
}

static struct permit *permit_of(struct lsemaphore *semaphore, const struct task *holder)
{
    list_each(node, &semaphore->permits)
    {
        struct permit *permit = container_of(node, struct permit, given);

        if (permit->holder == holder)
            return permit;
    }
    return NULL;
}

static int acquire(lua_State *L, struct lsemaphore *semaphore)
{
    struct task *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    if (semaphore->free > 0) {
        give_permit(L, semaphore, task);
        return push_true(L, NULL);
    }
    if (semaphore->is_mutex && permit_of(semaphore, task))
        return luaL_error(L, "this task has locked the mutex already, and would wait for itself");
    return waitq_wait(L, &semaphore->waiters, push_true, ltask_timeout_ms(L, 2), ltask_push_timeout,
                      NULL, semaphore);
}

/* semaphore:acquire([seconds]) -> true | nil, err */
static int lsemaphore_acquire(lua_State *L)
{
    return acquire(L, check_semaphore(L));
}

/* mutex:lock([seconds]) -> true | nil, err */
static int lmutex_lock(lua_State *L)
{
    return acquire(L, check_mutex(L));
}

static int release(lua_State *L, struct permit *permit)
{
    task_unhold(&permit->held);
    pass_on(permit);
    lua_settop(L, 1);
    return 1;
}

/* semaphore:release() -> semaphore. One task may acquire and another release: the oldest permit goes
 * if we have none. */
static int lsemaphore_release(lua_State *L)
{
    struct lsemaphore *semaphore = check_semaphore(L);
    struct permit     *permit    = permit_of(semaphore, task_current(L));

    if (!permit && !list_is_empty(&semaphore->permits))
        permit = container_of(semaphore->permits.next, struct permit, given);
    if (!permit)
        return luaL_error(L, "semaphore:release(): no permit is out");
    return release(L, permit);
}

/* mutex:unlock() -> mutex */
static int lmutex_unlock(lua_State *L)
{
    struct permit *permit = permit_of(check_mutex(L), task_current(L));

    if (!permit)
        return luaL_error(L, "mutex:unlock(): this task has not locked it");
    return release(L, permit);
}

/* Nobody waits, or it would be alive; those who hold a permit need not give it back any more. */
static int lsemaphore_gc(lua_State *L)
{
    struct lsemaphore *semaphore = lua_touserdata(L, 1);
    struct list       *node;

    while ((node = list_take_first(&semaphore->permits))) {
        struct permit *permit = container_of(node, struct permit, given);

        task_unhold(&permit->held);
        free(permit);
    }
    return 0;
}

/* --- the module --------------------------------------------------------------------------------------- */

static void add_class(lua_State *L, const char *field, const char *metatable,
                      const luaL_Reg *methods)
{
    lclass_push(L, metatable, methods, 0);
    lua_setfield(L, -2, field);
}

int lsync_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "event", levent_new },
                                          { "channel", lchannel_new },
                                          { "semaphore", lsemaphore_new },
                                          { "mutex", lmutex_new },
                                          { NULL, NULL } };
    static const luaL_Reg EVENT[]     = { { "set", levent_set },
                                          { "clear", levent_clear },
                                          { "is_set", levent_is_set },
                                          { "wait", levent_wait },
                                          { NULL, NULL } };
    static const luaL_Reg CHANNEL[]   = { { "send", lchannel_send },
                                          { "receive", lchannel_receive },
                                          { "close", lchannel_close },
                                          { NULL, NULL } };
    static const luaL_Reg SEMAPHORE[] = { { "acquire", lsemaphore_acquire },
                                          { "release", lsemaphore_release },
                                          { "__gc", lsemaphore_gc },
                                          { NULL, NULL } };
    static const luaL_Reg MUTEX[]     = { { "lock", lmutex_lock },
                                          { "unlock", lmutex_unlock },
                                          { "__gc", lsemaphore_gc },
                                          { NULL, NULL } };

    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    add_class(L, "Event", EVENT_METATABLE, EVENT);
    add_class(L, "Channel", CHANNEL_METATABLE, CHANNEL);
    add_class(L, "Semaphore", SEMAPHORE_METATABLE, SEMAPHORE);
    add_class(L, "Mutex", MUTEX_METATABLE, MUTEX);
    return 1;
}
