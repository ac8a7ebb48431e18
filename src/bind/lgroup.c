/* A group keeps places for its children, so that starting one allocates nothing but its coroutine.
 * Ends are taken in one of two ways. Gathered: each child's first value goes to its index of one
 * table, the parent sleeps until all are over, and the first failure cancels the others at once.
 * One by one: the outcomes queue up for next().
 *
 * Only task.lua calls this, with arguments that it has checked. */
#include "bind/lgroup.h"

#include <assert.h>
#include <stdbool.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/list.h"
#include "bind/lerror.h"
#include "bind/ltask.h"
#include "vm/task.h"
#include "vm/vm.h"
#include "vm/waitq.h"

struct lchild {
    struct list    link; /* in group->children or group->places */
    struct lgroup *group;
    struct task   *task;
    int            index; /* the caller's number for it */
};

/* The userdata. Its environment is the table of gathered values, or the queue of outcomes. */
struct lgroup {
    struct list   children;
    struct list   places; /* of struct lchild: not used now */
    struct waitq  waiters;
    unsigned      running;
    bool          gathers;
    bool          wants_room; /* it waits for a place, not for the end */
    bool          failed;     /* a gathered child has: the others are cancelled */
    int           anchor;     /* in the registry while children run */
    int           missing;    /* gathered children whose value was not stored, for want of memory */
    int           failure;    /* values of the outcome at FAILURE_KEY */
    int           first, last; /* of the queue */
    struct lchild child[];
};

enum { FAILURE_KEY = 0 };

/* new(places, values) -> group. VALUES: how many are gathered; nil: they are taken by next(). */
static int lgroup_new(lua_State *L)
{
    size_t         places  = (size_t)luaL_checkinteger(L, 1);
    bool           gathers = !lua_isnoneornil(L, 2);
    struct lgroup *group   = lua_newuserdata(L, sizeof(*group) + places * sizeof(struct lchild));

    *group = (struct lgroup){ .gathers = gathers, .anchor = LUA_NOREF, .first = 1 };
    list_init(&group->children);
    list_init(&group->places);
    waitq_init(&group->waiters);
    for (size_t i = 0; i < places; i++) {
        group->child[i].group = group;
        list_append(&group->places, &group->child[i].link);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setmetatable(L, -2);
    lua_createtable(L, gathers ? (int)lua_tointeger(L, 2) : 0, 0);
    lua_setfenv(L, -2);
    return 1;
}

static struct lgroup *check_group(lua_State *L)
{
    bool is_group = lua_isuserdata(L, 1) && lua_getmetatable(L, 1);

    if (unlikely(!is_group || !lua_rawequal(L, -1, lua_upvalueindex(1))))
        luaL_typerror(L, 1, LGROUP_METATABLE);
    lua_pop(L, 1);
    return lua_touserdata(L, 1);
}

/* --- children ----------------------------------------------------------------------------------- */

static void cancel_children(struct lgroup *group)
{
    list_each(node, &group->children)
        task_cancel(container_of(node, struct lchild, link)->task, "a sibling has decided");
}

/* It returned nil and something else, or did not return. */
static bool has_failed(enum task_end how, lua_State *co)
{
    if (how != TASK_RETURNED)
        return true;
    return lua_gettop(co) > 1 && lua_isnil(co, 1) && !lua_isnil(co, 2);
}

/* The environment of the group is on top. */
static void gather(lua_State *L, struct lgroup *group, int index, struct task *task,
                   enum task_end how, lua_State *co)
{
    if (group->failed) {
        if (group->failure > 0)
            return;
        group->failure = ltask_pack_outcome(L, task, how, co);
        lua_rawseti(L, -2, FAILURE_KEY);
        return;
    }
    group->missing++;
    if (lua_gettop(co) > 0) {
        lua_settop(co, 1);
        lua_xmove(co, L, 1);
        lua_rawseti(L, -2, index);
    }
    group->missing--;
}

/* queue[last + 1] = { index, count, outcome }; the queue is on top */
static void queue_outcome(lua_State *L, struct lgroup *group, int index, struct task *task,
                          enum task_end how, lua_State *co)
{
    int count;

    lua_createtable(L, 3, 0);
    lua_pushinteger(L, index);
    lua_rawseti(L, -2, 1);
    count = ltask_pack_outcome(L, task, how, co);
    lua_rawseti(L, -2, 3);
    lua_pushinteger(L, count);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, group->last + 1);
    group->last++;
}

static void leave(lua_State *L, struct lgroup *group, struct lchild *child)
{
    list_remove(&child->link);
    list_append(&group->places, &child->link);
    if (--group->running > 0)
        return;
    luaL_unref(L, LUA_REGISTRYINDEX, group->anchor);
    group->anchor = LUA_NOREF;
}

/* The books are closed before anything can raise: who waits then finds no outcome, but an end. */
static void on_child_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct lchild *child = arg;
    struct lgroup *group = child->group;
    lua_State     *L     = task_vm(task)->batch;

    lua_rawgeti(L, LUA_REGISTRYINDEX, group->anchor);
    lua_getfenv(L, -1);
    leave(L, group, child);
    if (group->gathers && !group->failed && has_failed(how, co)) {
        group->failed = true;
        cancel_children(group);
    }
    if (!group->gathers || group->running == 0 || group->wants_room)
        waitq_wake_all(&group->waiters);
    if (group->gathers)
        gather(L, group, child->index, task, how, co);
    else
        queue_outcome(L, group, child->index, task, how, co);
    lua_pop(L, 2);
}

bool lgroup_is_child(const struct task *task)
{
    return task_is_of(task, on_child_end);
}

/* start(group, index, fn, ...): there is a place for it */
static int lgroup_start(lua_State *L)
{
    struct lgroup *group = check_group(L);
    struct task   *task  = task_current(L);
    int            index = (int)lua_tointeger(L, 2);
    struct lchild *child;

    if (task_is_cancelled(task))
        return task_stop(L);
    assert(!list_is_empty(&group->places));
    if (group->anchor == LUA_NOREF) {
        lua_pushvalue(L, 1);
        group->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    child        = container_of(group->places.next, struct lchild, link);
    child->index = index;
    child->task =
        task_spawn(L, lua_gettop(L) - 3,
                   &(struct task_spec){ .on_end = on_child_end, .arg = child, .parent = task });
    list_remove(&child->link);
    list_append(&group->children, &child->link);
    group->running++;
    return 0;
}

/* --- gathered ------------------------------------------------------------------------------------- */

static int push_room(lua_State *L, void *op)
{
    struct lgroup *group = lua_touserdata(L, 1);

    group->wants_room = false;
    lua_pushboolean(L, !group->failed);
    return 1;
}

/* room(group) -> true: there is a place for another; false: one has failed */
static int lgroup_room(lua_State *L)
{
    struct lgroup *group = check_group(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (group->failed || !list_is_empty(&group->places))
        return push_room(L, NULL);
    group->wants_room = true;
    return waitq_wait(L, &group->waiters, push_room, UINT64_MAX, NULL, NULL, NULL);
}

static int push_gathered(lua_State *L, void *op)
{
    struct lgroup *group = lua_touserdata(L, 1);

    if (group->missing > 0 || (group->failed && group->failure == 0))
        return luaL_error(L, "not enough memory");
    lua_settop(L, 1);
    if (!group->failed) {
        lua_pushboolean(L, true);
        lua_getfenv(L, 1);
        return 2;
    }
    lua_getfenv(L, 1);
    lua_rawgeti(L, 2, FAILURE_KEY);
    return ltask_unpack_outcome(L, 3, group->failure);
}

/* gather(group) -> true, values | the outcome of the first that failed: when all are over. The
 * outcome of a function that returned nil and an error: true, nil, err */
static int lgroup_gather(lua_State *L)
{
    struct lgroup *group = check_group(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (group->running == 0)
        return push_gathered(L, NULL);
    return waitq_wait(L, &group->waiters, push_gathered, UINT64_MAX, NULL, NULL, NULL);
}

/* --- one by one -------------------------------------------------------------------------------------- */

static int push_nothing(lua_State *L)
{
    return 0;
}

static int push_next(lua_State *L, void *op)
{
    struct lgroup *group = lua_touserdata(L, 1);
    int            count;

    if (group->first > group->last) /* no memory for an outcome */
        return luaL_error(L, "not enough memory");
    lua_settop(L, 1);
    lua_getfenv(L, 1);
    lua_rawgeti(L, 2, group->first);
    lua_pushnil(L);
    lua_rawseti(L, 2, group->first++);
    lua_rawgeti(L, 3, 2);
    count = (int)lua_tointeger(L, -1);
    lua_rawgeti(L, 3, 3);
    lua_rawgeti(L, 3, 1);
    return 1 + ltask_unpack_outcome(L, 5, count);
}

/* next(group, [seconds]) -> index, the outcome | nothing: the time is up, or none is left */
static int lgroup_next(lua_State *L)
{
    struct lgroup *group = check_group(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (group->first <= group->last)
        return push_next(L, NULL);
    if (group->running == 0)
        return 0;
    return waitq_wait(L, &group->waiters, push_next, ltask_timeout_ms(L, 2), push_nothing, NULL,
                      NULL);
}

/* cancel(group): all that still run */
static int lgroup_cancel(lua_State *L)
{
    cancel_children(check_group(L));
    return 0;
}

int lgroup_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "new", lgroup_new },   { "start", lgroup_start },
        { "room", lgroup_room }, { "gather", lgroup_gather },
        { "next", lgroup_next }, { "cancel", lgroup_cancel },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_newmetatable(L, LGROUP_METATABLE);
    lua_pushliteral(L, LGROUP_METATABLE);
    lua_setfield(L, -2, "__name");
    luaL_setfuncs(L, FUNCTIONS, 1);
    return 1;
}
