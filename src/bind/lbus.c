/* A subscription is a userdata that its task holds; what has come and was not read yet is a queue of
 * shared messages, made into Lua values only when somebody takes them. */
#include "bind/lbus.h"

#include <stdbool.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lmarshal.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "data/bus.h"
#include "vm/task.h"
#include "vm/waitq.h"

#define SUBSCRIPTION_METATABLE "srv.Subscription"

enum { FIRST_ROOM = 8 };

enum lsub_state {
    LSUB_OPEN,
    LSUB_CLOSED, /* by close(), or its task has ended */
    LSUB_BEHIND, /* it was full, and overflow = "close" */
};

struct lsub {
    struct held          held; /* by the task that subscribed */
    struct bus_sub       sub;
    enum lsub_state      state;
    struct bus_message **queue; /* owned; a ring of ROOM */
    unsigned             room, first, count;
    unsigned             limit;  /* of count */
    bool                 closes; /* when it is full, instead of losing messages */
    double               dropped;
    struct waitq         waiters;  /* one at most */
    bool                 promised; /* it was woken, and has not taken its message yet */
};

static struct lsub *check_sub(lua_State *L)
{
    return luaL_checkudata(L, 1, SUBSCRIPTION_METATABLE);
}

/* --- the queue ---------------------------------------------------------------------------------- */

static bool make_room(struct lsub *lsub)
{
    unsigned             room = lsub->room ? lsub->room * 2 : FIRST_ROOM;
    struct bus_message **more = malloc(room * sizeof(struct bus_message *));

    if (!more)
        return false;
    for (unsigned i = 0; i < lsub->count; i++)
        more[i] = lsub->queue[(lsub->first + i) % lsub->room];
    free(lsub->queue);
    lsub->queue = more;
    lsub->room  = room;
    lsub->first = 0;
    return true;
}

static bool put(struct lsub *lsub, struct bus_message *message)
{
    if (lsub->count == lsub->limit || (lsub->count == lsub->room && !make_room(lsub)))
        return false;
    lsub->queue[(lsub->first + lsub->count++) % lsub->room] = bus_message_keep(message);
    return true;
}

static void drop_first(struct lsub *lsub)
{
    bus_message_let_go(lsub->queue[lsub->first]);
    lsub->first = (lsub->first + 1) % lsub->room;
    lsub->count--;
}

static void wake_reader(struct lsub *lsub)
{
    if (waitq_is_empty(&lsub->waiters))
        return;
    lsub->promised = true;
    waitq_wake_all(&lsub->waiters);
}

/* --- what comes ----------------------------------------------------------------------------------- */

static void end(struct lsub *lsub, enum lsub_state state)
{
    if (lsub->state != LSUB_OPEN)
        return;
    lsub->state = state;
    bus_unsubscribe(&lsub->sub);
    task_unhold(&lsub->held);
    wake_reader(lsub);
}

static void lose(struct lsub *lsub, unsigned count)
{
    lsub->dropped += count;
    if (lsub->closes)
        end(lsub, LSUB_BEHIND);
}

static void on_message(struct bus_sub *sub, struct bus_message *message)
{
    struct lsub *lsub = container_of(sub, struct lsub, sub);

    if (put(lsub, message))
        wake_reader(lsub);
    else
        lose(lsub, 1);
}

static void on_lost(struct bus_sub *sub, unsigned count)
{
    lose(container_of(sub, struct lsub, sub), count);
}

static void forget_all(struct lsub *lsub)
{
    while (lsub->count > 0)
        drop_first(lsub);
    free(lsub->queue);
    lsub->queue = NULL;
    lsub->room  = 0;
}

/* Messages are not Lua's memory, so a collection may be long in coming. */
static void on_task_end(struct held *held)
{
    struct lsub *lsub = container_of(held, struct lsub, held);

    end(lsub, LSUB_CLOSED);
    forget_all(lsub);
}

/* --- topics ------------------------------------------------------------------------------------------- */

struct str lbus_check_topic(lua_State *L, int index, const char *where)
{
    struct str topic;

    if (lua_type(L, index) != LUA_TSTRING)
        lerror_misuse(L, "%s: a topic is a string", where);
    topic = lstr_at(L, index);
    if (topic.len == 0 || topic.len > BUS_TOPIC_BYTES_MAX)
        lerror_misuse(L, "%s: a topic has 1 to %d bytes", where, BUS_TOPIC_BYTES_MAX);
    return topic;
}

/* --- publishing ------------------------------------------------------------------------------------ */

static int publish(lua_State *L, const char *where, uint64_t from)
{
    struct env *env   = env_of(L);
    struct buf *bytes = lmarshal_buf(L);
    struct str  topic = lbus_check_topic(L, 1, where);
    struct err  err;

    if (str_find(topic, '*') < topic.len)
        return lerror_misuse(L, "%s: a topic to publish to holds no \"*\"", where);
    if (lua_isnoneornil(L, 2))
        return lerror_misuse(L, "%s: nil cannot be sent: it would read as the end", where);
    if (!env->bus)
        return lerror_nil(L, "unavailable", "no bus is lent to this VM");
    lmarshal_add(L, 2, where, bytes);
    if (bytes->failed)
        return lerror_nil(L, "too_large", "a message of the bus has at most %d KiB",
                          BUS_BYTES_MAX / 1024);
    if (bus_publish_from(env->bus, from, topic, buf_str(bytes), &err) != 0)
        return lerror_nil_err(L, NULL, &err);
    lua_pushboolean(L, true);
    return 1;
}

/* publish(topic, v) -> true | nil, err */
static int lbus_publish(lua_State *L)
{
    return publish(L, "srv.bus.publish", 0);
}

/* publish_from(topic, v, serial) -> true | nil, err: by a socket, which does not get it (bind/lws_topics) */
static int lbus_publish_from(lua_State *L)
{
    return publish(L, "ws:publish", (uint64_t)luaL_checknumber(L, 3));
}

/* --- subscribing ------------------------------------------------------------------------------------ */

static struct lsub *new_sub(lua_State *L)
{
    struct lsub *lsub = lclass_new(L, SUBSCRIPTION_METATABLE, sizeof(*lsub));

    *lsub = (struct lsub){ .state = LSUB_CLOSED,
                           .held  = { .release = on_task_end },
                           .sub   = { .on_message = on_message, .on_lost = on_lost } };
    list_init(&lsub->held.link);
    waitq_init(&lsub->waiters);
    return lsub;
}

/* subscribe(topic, limit, closes) -> sub | nil, err */
static int lbus_subscribe(lua_State *L)
{
    struct env  *env   = env_of(L);
    struct task *task  = task_current(L);
    struct str   topic = lbus_check_topic(L, 1, "srv.bus.subscribe");
    struct lsub *lsub;
    struct err   err;

    if (task_is_cancelled(task))
        return task_stop(L);
    if (!env->bus_port)
        return lerror_nil(L, "unavailable", "no bus is lent to this VM");
    lsub         = new_sub(L);
    lsub->limit  = (unsigned)luaL_checkinteger(L, 2);
    lsub->closes = lua_toboolean(L, 3);
    if (bus_subscribe(env->bus_port, &lsub->sub, topic, &err) != 0)
        return lerror_nil_err(L, "unavailable", &err);
    lsub->state = LSUB_OPEN;
    task_hold(task, &lsub->held);
    return 1;
}

/* sub:close() -> sub: what has come already can still be read; idempotent */
static int lsub_close(lua_State *L)
{
    end(check_sub(L), LSUB_CLOSED);
    lua_settop(L, 1);
    return 1;
}

static int push_end(lua_State *L, const struct lsub *lsub)
{
    if (lsub->state == LSUB_BEHIND)
        return lerror_nil(L, "closed",
                          "the subscription was closed because its reader fell behind by %d "
                          "messages",
                          (int)lsub->limit);
    return lerror_nil(L, "closed", "the subscription is closed");
}

/* A value and its topic. Bytes that srv has not written are a string. */
static int push_first(lua_State *L, struct lsub *lsub)
{
    struct bus_message *message = lsub->queue[lsub->first];
    struct str          topic   = bus_message_topic(message);
    struct str          bytes   = bus_message_bytes(message);

    if (!lmarshal_push(L, bytes))
        lstr_push(L, bytes);
    lstr_push(L, topic);
    drop_first(lsub);
    return 2;
}

static int push_received(lua_State *L, void *op)
{
    struct waiter *waiter = op;
    struct lsub   *lsub   = waiter->owner;
    int            count  = lsub->count > 0 ? push_first(L, lsub) : push_end(L, lsub);

    lsub->promised = false;
    return count;
}

static void forget_promise(struct waiter *waiter)
{
    struct lsub *lsub = waiter->owner;

    lsub->promised = false;
}

/* sub:receive([seconds]) -> v, topic | nil, err */
static int lsub_receive(lua_State *L)
{
    struct lsub *lsub = check_sub(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (lsub->promised || !waitq_is_empty(&lsub->waiters))
        return lerror_misuse(L,
                             "subscription: another task reads it: give each task one of its own");
    if (lsub->count > 0)
        return push_first(L, lsub);
    if (lsub->state != LSUB_OPEN)
        return push_end(L, lsub);
    return waitq_wait(L, &lsub->waiters, push_received, ltask_timeout_ms(L, 2), ltask_push_timeout,
                      forget_promise, lsub);
}

/* dropped(sub) -> number */
static int lbus_dropped(lua_State *L)
{
    lua_pushnumber(L, check_sub(L)->dropped);
    return 1;
}

/* ended(sub) -> boolean: by close() or with its task */
static int lbus_ended(lua_State *L)
{
    lua_pushboolean(L, check_sub(L)->state == LSUB_CLOSED);
    return 1;
}

static int lsub_gc(lua_State *L)
{
    struct lsub *lsub = lua_touserdata(L, 1);

    end(lsub, LSUB_CLOSED);
    forget_all(lsub);
    return 0;
}

/* --- the module --------------------------------------------------------------------------------------- */

int lbus_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "publish", lbus_publish },     { "publish_from", lbus_publish_from },
        { "subscribe", lbus_subscribe }, { "dropped", lbus_dropped },
        { "ended", lbus_ended },         { NULL, NULL }
    };
    static const luaL_Reg METHODS[] = {
        { "close", lsub_close }, { "receive", lsub_receive }, { "__gc", lsub_gc }, { NULL, NULL }
    };

    lua_newtable(L);
    lmarshal_push_buf(L, BUS_BYTES_MAX);
    luaL_setfuncs(L, FUNCTIONS, 1);
    lclass_push(L, SUBSCRIPTION_METATABLE, METHODS, 0);
    lua_setfield(L, -2, "Subscription");
    return 1;
}
