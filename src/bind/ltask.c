#include "bind/ltask.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/list.h"
#include "bind/lerror.h"
#include "vm/task.h"
#include "vm/trace.h"
#include "vm/vm.h"
#include "vm/waitq.h"

/* --- time ------------------------------------------------------------------------------------- */

enum { TIMEOUT_S_MAX = 1000000000 }; /* 30 years */

uint64_t ltask_timeout_ms(lua_State *L, int index)
{
    double seconds;

    if (lua_isnoneornil(L, index))
        return UINT64_MAX;
    seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds >= 0, index, "a time must not be negative");
    return (uint64_t)ceil((seconds < TIMEOUT_S_MAX ? seconds : TIMEOUT_S_MAX) * 1000);
}

int ltask_push_timeout(lua_State *L)
{
    return lerror_nil(L, "timeout", "this took too long");
}

static int push_nothing(lua_State *L)
{
    return 0;
}

/* sleep(seconds) */
static int ltask_sleep(lua_State *L)
{
    luaL_checknumber(L, 1);
    task_current(L);
    return task_wait_for(L, NULL, NULL, NULL, ltask_timeout_ms(L, 1), push_nothing);
}

/* --- outcomes ---------------------------------------------------------------------------------- */

int ltask_pack_outcome(lua_State *L, struct task *task, enum task_end how, lua_State *co)
{
    int count = how == TASK_RETURNED ? lua_gettop(co) : 0;

    lua_createtable(L, count + 3, 0);
    switch (how) {
    case TASK_RETURNED:
        lua_pushboolean(L, true);
        lua_rawseti(L, -2, 1);
        for (int i = 1; i <= count; i++) {
            lua_pushvalue(co, i);
            lua_xmove(co, L, 1);
            lua_rawseti(L, -2, i + 1);
        }
        return count + 1;
    case TASK_RAISED:
        lua_pushboolean(L, false);
        lua_rawseti(L, -2, 1);
        lua_pushvalue(co, -1);
        lua_xmove(co, L, 1);
        lua_rawseti(L, -2, 2);
        task_push_traceback(L, task);
        lua_rawseti(L, -2, 3);
        return 3;
    default:
        lerror_push(L, "cancelled", "%s", task_reason(task));
        lua_rawseti(L, -2, 2);
        return 2;
    }
}

int ltask_unpack_outcome(lua_State *L, int index, int count)
{
    luaL_checkstack(L, count + 2, "too many results");
    for (int i = 1; i <= count; i++)
        lua_rawgeti(L, index, i);
    return count;
}

/* --- spawned tasks ----------------------------------------------------------------------------------- */

enum ltask_state { LTASK_RUNNING, LTASK_DONE, LTASK_FAILED, LTASK_CANCELLED };

/* The userdata. While the task lives, the registry keeps it alive. Its outcome is its environment. */
struct ltask {
    struct task     *task; /* NULL: it has ended */
    struct waitq     waiters;
    enum ltask_state state;
    int              anchor;
    int              count;   /* values of the outcome */
    struct unasked  *unasked; /* an error that nobody has asked for yet */
};

/* Held by the parent: at its end nobody will ask any more. */
struct unasked {
    struct held   held;
    struct ltask *ltask; /* NULL: the collector has it */
    struct vm    *vm;
    char          text[];
};

static void tell_unasked(struct unasked *unasked)
{
    if (unasked->ltask)
        unasked->ltask->unasked = NULL;
    vm_report(unasked->vm, NULL, "error in a spawned task", unasked->text);
    free(unasked);
}

static void on_parent_end(struct held *held)
{
    tell_unasked(container_of(held, struct unasked, held));
}

static void forget_unasked(struct ltask *ltask)
{
    if (!ltask->unasked)
        return;
    task_unhold(&ltask->unasked->held);
    free(ltask->unasked);
    ltask->unasked = NULL;
}

/* TEXT is told when the parent ends, if nobody asks before. */
static bool put_by(struct ltask *ltask, struct task *parent, const char *text)
{
    size_t          bytes   = strlen(text) + 1;
    struct unasked *unasked = malloc(sizeof(*unasked) + bytes);

    if (!unasked)
        return false;
    unasked->held.release = on_parent_end;
    unasked->ltask        = ltask;
    unasked->vm           = task_vm(parent);
    memcpy(unasked->text, text, bytes);
    task_hold(parent, &unasked->held);
    ltask->unasked = unasked;
    return true;
}

static void keep_error(lua_State *L, struct ltask *ltask, struct task *task)
{
    struct task *parent = task_parent(task);
    const char  *text;

    task_push_failure(L, task);
    text = lua_tostring(L, -1);
    if (!parent)
        vm_report(task_vm(task), task, "error in a background task", text);
    else if (task_state(parent) == T_ENDED || !put_by(ltask, parent, text))
        vm_report(task_vm(task), task, "error in a spawned task", text);
    lua_pop(L, 1);
}

static enum ltask_state state_after(enum task_end how)
{
    switch (how) {
    case TASK_RETURNED: return LTASK_DONE;
    case TASK_RAISED: return LTASK_FAILED;
    default: return LTASK_CANCELLED;
    }
}

/* The waiters are woken first, so that they do not hang if there is no memory for the outcome;
 * their turn comes later. */
static void on_spawned_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct ltask *ltask = arg;
    lua_State    *L     = task_vm(task)->batch;
    bool          asked = !waitq_is_empty(&ltask->waiters);

    ltask->task  = NULL;
    ltask->state = state_after(how);
    waitq_wake_all(&ltask->waiters);
    lua_rawgeti(L, LUA_REGISTRYINDEX, ltask->anchor);
    luaL_unref(L, LUA_REGISTRYINDEX, ltask->anchor);
    if (how == TASK_RAISED && !asked)
        keep_error(L, ltask, task);
    ltask->count = ltask_pack_outcome(L, task, how, co);
    lua_setfenv(L, -2);
    lua_pop(L, 1);
}

static struct ltask *new_ltask(lua_State *L)
{
    struct ltask *ltask = lua_newuserdata(L, sizeof(*ltask));

    *ltask = (struct ltask){ .state = LTASK_RUNNING };
    waitq_init(&ltask->waiters);
    luaL_getmetatable(L, LTASK_METATABLE);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    ltask->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    return ltask;
}

/* Leaves the handle of a task that calls the function at 1 with what follows. */
static int spawn(lua_State *L, const struct task_spec *kind)
{
    struct task_spec spec  = *kind;
    int              nargs = lua_gettop(L) - 1;
    struct ltask    *ltask;

    luaL_checkany(L, 1);
    ltask = new_ltask(L);
    lua_insert(L, 1);
    spec.on_end = on_spawned_end;
    spec.arg    = ltask;
    ltask->task = task_spawn(L, nargs, &spec);
    return 1;
}

/* spawn(fn, ...) -> srv.Task: a child of the running task */
static int ltask_spawn(lua_State *L)
{
    struct task *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    return spawn(L, &(struct task_spec){ .parent = task });
}

/* background(what, fn, ...) -> srv.Task: nobody's child. What it raises is no error of before, though it may be the
 * same text: a module that fails is often tried again. */
static int ltask_background(lua_State *L)
{
    enum { REQUIRE };
    static const char *const LABELS[] = { "require", "background",
                                          NULL }; /* labels are constants */
    int                      what     = luaL_checkoption(L, 1, NULL, LABELS);

    trace_forget(L);
    lua_remove(L, 1);
    return spawn(L, &(struct task_spec){ .label = LABELS[what], .loads = what == REQUIRE });
}

static struct ltask *check_ltask(lua_State *L)
{
    return luaL_checkudata(L, 1, LTASK_METATABLE);
}

static int push_task_outcome(lua_State *L, void *op)
{
    struct ltask *ltask = lua_touserdata(L, 1);

    if (ltask->count == 0)
        return lerror_nil(L, "lua", "no memory for the results of a task");
    lua_settop(L, 1);
    lua_getfenv(L, 1);
    return ltask_unpack_outcome(L, 2, ltask->count);
}

/* An error blamed on the innermost line that is not srv's own. */
static int raise_misuse(lua_State *L, const char *text)
{
    trace_push_where(L);
    lua_pushstring(L, text);
    lua_concat(L, 2);
    return lua_error(L);
}

/* task:wait([seconds]) -> the outcome */
static int ltask_wait(lua_State *L)
{
    struct ltask *ltask = check_ltask(L);
    struct task  *task  = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    forget_unasked(ltask);
    if (!ltask->task)
        return push_task_outcome(L, NULL);
    if (ltask->task == task)
        return raise_misuse(L, "task:wait: a task cannot wait for itself");
    return waitq_wait(L, &ltask->waiters, push_task_outcome, ltask_timeout_ms(L, 2),
                      ltask_push_timeout, NULL, NULL);
}

bool ltask_is_awaited(const struct task *task)
{
    struct ltask *ltask = task_is_of(task, on_spawned_end) ? task_arg(task) : NULL;

    return ltask && waitq_has(&ltask->waiters, task_parent(task)) &&
           !task_wait_ends(task_parent(task));
}

/* task:cancel() */
static int ltask_cancel(lua_State *L)
{
    struct ltask *ltask = check_ltask(L);

    if (ltask->task)
        task_cancel(ltask->task, "task:cancel()");
    return 0;
}

/* state(task) -> "running" | "done" | "failed" | "cancelled" */
static int ltask_state(lua_State *L)
{
    static const char *const WORDS[] = { "running", "done", "failed", "cancelled" };

    lua_pushstring(L, WORDS[check_ltask(L)->state]);
    return 1;
}

/* Nobody can ask any more. */
static int ltask_gc(lua_State *L)
{
    struct ltask *ltask = lua_touserdata(L, 1);

    if (ltask->unasked) {
        task_unhold(&ltask->unasked->held);
        tell_unasked(ltask->unasked);
    }
    return 0;
}

/* --- errors --------------------------------------------------------------------------------------------- */

/* defer(fn) */
static int ltask_defer(lua_State *L)
{
    luaL_checkany(L, 1);
    task_defer(L, 1);
    return 0;
}

/* raise(error, trace): as error(error, 0), and the trace, which tells all that is known of the error so far,
 * stands before that of this place */
static int ltask_raise(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isstring(L, 2)) {
        trace_forget(L);
        trace_note_text(L, 1);
    }
    lua_settop(L, 1);
    return lua_error(L);
}

/* traceback([error]) -> text: of what called our caller, a message handler, through all coroutines;
 * for an error that came from others, of theirs too. */
static int ltask_traceback(lua_State *L)
{
    lua_settop(L, 1);
    trace_push_running(L, 1, 2);
    return 1;
}

/* keep_trace(error) -> error: a message handler for who will raise the error again */
static int ltask_keep_trace(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushnil(L);
    trace_push_running(L, 2, 1);
    trace_note_text(L, 1);
    lua_settop(L, 1);
    return 1;
}

/* misuse(message) */
static int ltask_misuse(lua_State *L)
{
    return raise_misuse(L, luaL_checkstring(L, 1));
}

/* scope() -> something that tells one request, timer or background task from another | nil */
static int ltask_scope(lua_State *L)
{
    struct task *running = vm_of(L)->running;

    if (!running)
        return 0;
    lua_pushlightuserdata(L, task_root(running));
    return 1;
}

/* --- the module ------------------------------------------------------------------------------------------- */

static void make_class(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
}

int ltask_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "sleep", ltask_sleep },
        { "spawn", ltask_spawn },
        { "background", ltask_background },
        { "state", ltask_state },
        { "defer", ltask_defer },
        { "raise", ltask_raise },
        { "traceback", ltask_traceback },
        { "misuse", ltask_misuse },
        { "scope", ltask_scope },
        { "keep_trace", ltask_keep_trace },
        { NULL, NULL },
    };
    static const luaL_Reg TASK_METHODS[] = {
        { "wait", ltask_wait }, { "cancel", ltask_cancel }, { "__gc", ltask_gc }, { NULL, NULL }
    };

    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    make_class(L, LTASK_METATABLE, TASK_METHODS);
    lua_setfield(L, -2, "Task");
    return 1;
}
