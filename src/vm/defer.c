/* What a task put off until its end runs in a task of its own, a child that nobody cancels but its
 * deadline: last first, each with the cause of the end; an error in one is reported, and the next
 * runs all the same. One that uses up the time is cut off; the others still run, in new tasks that
 * last no longer than a first wait, so that a file is closed and a counter put right. */
#include <lauxlib.h>

#include "base/compiler.h"
#include "vm/task.h"
#include "vm/task_impl.h"
#include "vm/vm_state.h"

void task_defer(lua_State *L, int index)
{
    struct task *task = task_current(L);

    lua_pushvalue(L, index);
    if (task->defers == LUA_NOREF) {
        lua_createtable(L, 4, 0);
        task->defers = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, task->defers);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (int)task->defer_count + 1);
    lua_pop(L, 1);
    task->defer_count++;
}

static void push_cause(lua_State *L, struct task *owner)
{
    switch (owner->how) {
    case TASK_RETURNED: lua_pushnil(L); break;
    case TASK_CANCELLED: vm_push_error(L, "cancelled", owner->reason); break;
    case TASK_RAISED:
        lua_pushvalue(owner->failed.L, -1);
        lua_xmove(owner->failed.L, L, 1);
        break;
    }
}

/* The last function and its argument. */
static int push_next(lua_State *L, struct task *owner)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, owner->defers);
    lua_rawgeti(L, -1, (int)owner->defer_count--);
    lua_remove(L, -2);
    push_cause(L, owner);
    return 1;
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    return push_next(co, arg);
}

static void report(struct task *task, lua_State *co)
{
    task_push_failure(co, task);
    vm_report(task->vm, task, "error in a defer", lua_tostring(co, -1));
}

static void start(struct task *owner, uint64_t time_ms);

/* Where the VM goes there are none left: vm_abandon_tasks() has forgotten them. */
static void on_cut(struct task *task, struct task *owner)
{
    vm_report(task->vm, task, "a defer was cut off", task->reason);
    if (owner->defer_count > 0)
        start(owner, DEFER_REST_MS);
    else
        defer_forget(owner);
}

static void on_over(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct task *owner = arg;

    if (how == TASK_CANCELLED) {
        on_cut(task, owner);
        return;
    }
    if (how == TASK_RAISED)
        report(task, co);
    lua_settop(co, 0);
    if (owner->defer_count > 0)
        task_continue(task, co, push_next(co, owner), on_over);
    else
        defer_forget(owner);
}

void defer_forget(struct task *task)
{
    if (task->defers == LUA_NOREF)
        return;
    luaL_unref(task->vm->batch, LUA_REGISTRYINDEX, task->defers);
    task->defers      = LUA_NOREF;
    task->defer_count = 0;
}

static void start(struct task *owner, uint64_t time_ms)
{
    struct task_spec spec = {
        .prepare     = prepare,
        .on_end      = on_over,
        .arg         = owner,
        .parent      = owner,
        .deadline_ms = time_ms,
        .no_cancel   = true,
    };

    task_queue(task_new(owner->vm, &spec));
}

void defer_start(struct task *task)
{
    start(task, DEFER_TIME_MS);
}
