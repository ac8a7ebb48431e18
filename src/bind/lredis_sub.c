/* A subscription is held by the task that made it, and closed when that ends. */
#include "bind/lredis_sub.h"

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lredis_client.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "bind/lrows.h"
#include "data/fault.h"
#include "data/redis_sub.h"
#include "vm/task.h"
#include "vm/vm.h"

#define SUB_METATABLE "srv.redis.Subscription"

enum { WORDS_MAX = 1024 };

struct lsub {
    struct held       held;
    struct redis_sub *sub;  /* NULL: closed */
    struct task      *task; /* that waits */
    bool              for_confirmation;
};

static struct lsub *check_sub(lua_State *L, int index)
{
    return luaL_checkudata(L, index, SUB_METATABLE);
}

/* --- life ---------------------------------------------------------------------------------------------- */

static bool is_ready(const struct lsub *lsub)
{
    struct redis_message message;

    if (!lsub->sub || redis_sub_fault(lsub->sub))
        return true;
    return lsub->for_confirmation ? redis_sub_is_confirmed(lsub->sub)
                                  : redis_sub_first(lsub->sub, &message);
}

static void on_event(struct redis_sub *sub, void *arg)
{
    struct lsub *lsub = arg;

    if (lsub->task && is_ready(lsub))
        task_wake(lsub->task);
}

/* Whoever waits is told; not by our own task's end, for that waits for nothing any more. */
static void end_sub(struct lsub *lsub)
{
    struct redis_sub *sub = lsub->sub;

    lsub->sub = NULL;
    task_unhold(&lsub->held);
    redis_sub_close(sub);
    if (lsub->task)
        task_wake(lsub->task);
}

static void release_sub(struct held *held)
{
    end_sub(container_of(held, struct lsub, held));
}

/* subscription:close() */
static int sub_close(lua_State *L)
{
    end_sub(check_sub(L, 1));
    return 0;
}

static size_t check_words(lua_State *L, int index, struct str words[WORDS_MAX])
{
    size_t count = lua_objlen(L, index);

    luaL_argcheck(L, count >= 1 && count <= WORDS_MAX, index, "1 to 1024 channels");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (int)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            lerror_misuse(L, "redis:subscribe: channels are strings");
        words[i] = lstr_at(L, -1);
        lua_pop(L, 1); /* the table keeps it */
    }
    return count;
}

/* subscribe(client, is_pattern, words) -> subscription */
static int subscribe(lua_State *L)
{
    struct redis_client *client = lredis_check_client(L, 1);
    struct task         *task   = task_current(L);
    struct str           words[WORDS_MAX];
    size_t               count;
    struct lsub         *lsub;

    luaL_checktype(L, 3, LUA_TTABLE);
    count = check_words(L, 3, words);
    if (task_is_cancelled(task))
        return task_stop(L);
    lsub               = lclass_new(L, SUB_METATABLE, sizeof(*lsub));
    lsub->held.release = release_sub;
    list_init(&lsub->held.link);
    lsub->sub = redis_sub_open(client, lua_toboolean(L, 2), words, count, on_event, lsub);
    if (!lsub->sub)
        return luaL_error(L, "not enough memory, or the names of the channels are too long");
    task_hold(task, &lsub->held);
    return 1;
}

/* --- waiting ---------------------------------------------------------------------------------------------- */

static void disarm(void *op)
{
    struct lsub *lsub = op;

    lsub->task = NULL;
}

static int push_result(lua_State *L, struct lsub *lsub)
{
    struct redis_message message;

    if (!lsub->sub) {
        lua_pushnil(L);
        return 1;
    }
    if (redis_sub_fault(lsub->sub))
        return lrows_push_fault(L, redis_sub_fault(lsub->sub));
    if (lsub->for_confirmation) {
        lua_pushboolean(L, true);
        return 1;
    }
    redis_sub_first(lsub->sub, &message);
    lstr_push_or_nil(L, message.text);
    lstr_push_or_nil(L, message.channel);
    lstr_push_or_nil(L, message.pattern);
    redis_sub_next(lsub->sub);
    return 3;
}

static int push_woken(lua_State *L, void *op)
{
    struct lsub *lsub  = op;
    int          count = push_result(L, lsub);

    lsub->task = NULL;
    return count;
}

static int wait_for(lua_State *L, bool confirmation, uint64_t timeout_ms)
{
    struct lsub *lsub = check_sub(L, 1);
    struct task *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    if (lsub->task)
        return lerror_misuse(L, "subscription:receive: it is waited for by one task at a time");
    lsub->for_confirmation = confirmation;
    if (is_ready(lsub))
        return push_result(L, lsub);
    lsub->task = task;
    return task_wait_for(L, lsub, disarm, push_woken, timeout_ms, ltask_push_timeout);
}

/* subscription:confirm() -> true | nil, err */
static int sub_confirm(lua_State *L)
{
    return wait_for(L, true, UINT64_MAX);
}

/* subscription:receive([seconds]) -> text, channel, pattern|nil | nil (closed) | nil, err */
static int sub_receive(lua_State *L)
{
    return wait_for(L, false, ltask_timeout_ms(L, 2));
}

/* --- the module ---------------------------------------------------------------------------------------------- */

void lredis_sub_add(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "confirm", sub_confirm },
                                        { "receive", sub_receive },
                                        { "close", sub_close },
                                        { "__gc", sub_close },
                                        { NULL, NULL } };

    lclass_add(L, SUB_METATABLE, METHODS);
    lua_pushcfunction(L, subscribe);
    lua_setfield(L, -2, "subscribe");
}
