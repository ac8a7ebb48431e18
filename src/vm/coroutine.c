#include "vm/coroutine.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "vm/task_impl.h"
#include "vm/trace.h"
#include "vm/vm_state.h"

enum {
    IDLE_MAX  = 4096, /* kept; a new one costs 0.1 us, and the collector as much */
    IDLE_MIN  = 16,   /* kept even when nothing happens */
    DEPTH_MAX = 190,  /* C frames: LuaJIT itself does not count and would overflow the C stack */
};

/* --- the tasks' own --------------------------------------------------------------------------- */

struct coroutine_pool {
    unsigned         count;
    struct coroutine idle[IDLE_MAX];
};

struct coroutine_pool *coroutine_pool_new(void)
{
    return calloc(1, sizeof(struct coroutine_pool));
}

void coroutine_pool_free(struct coroutine_pool *pool)
{
    free(pool);
}

struct coroutine coroutine_take(struct vm *vm, lua_State *L)
{
    struct coroutine_pool *pool = vm->coroutines;
    struct coroutine       co;

    if (likely(pool->count > 0))
        return pool->idle[--pool->count];
    luaL_checkstack(L, 2, "no room for a coroutine");
    co.L   = lua_newthread(L);
    co.ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return co;
}

void coroutine_give(struct vm *vm, struct coroutine *co)
{
    struct coroutine_pool *pool = vm->coroutines;

    if (unlikely(pool->count == IDLE_MAX)) {
        coroutine_drop(vm, co);
        return;
    }
    lua_settop(co->L, 0);
    pool->idle[pool->count++] = *co;
    co->L                     = NULL;
}

void coroutine_pool_trim(struct vm *vm)
{
    struct coroutine_pool *pool = vm->coroutines;

    while (pool->count > IDLE_MIN)
        coroutine_drop(vm, &pool->idle[--pool->count]);
}

void coroutine_drop(struct vm *vm, struct coroutine *co)
{
    luaL_unref(vm->batch, LUA_REGISTRYINDEX, co->ref);
    co->L = NULL;
}

/* --- marks ------------------------------------------------------------------------------------- */

static const char WAITING[]   = "waiting";
static const char ABANDONED[] = "abandoned";

int coroutine_suspend(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)WAITING);
    return lua_yield(L, lua_gettop(L)); /* all of it: nothing moves, the arguments stay alive */
}

static const char *mark_of(lua_State *co)
{
    const char *mark;

    if (lua_status(co) != LUA_YIELD || lua_gettop(co) == 0 || !lua_islightuserdata(co, -1))
        return NULL;
    mark = lua_touserdata(co, -1);
    return mark == WAITING || mark == ABANDONED ? mark : NULL;
}

/* Interned when WAITING was pushed, and in the place of that one: nothing is allocated. */
static void mark_abandoned(lua_State *co)
{
    if (mark_of(co) != WAITING)
        return;
    lua_settop(co, -2);
    lua_pushlightuserdata(co, (void *)ABANDONED);
}

/* It yielded amid its code, with nothing on its stack, where the hook had made room. The mark may have
 * to be allocated, which can raise, and nothing would catch that in a suspended coroutine. */
void coroutine_bury_stopped(struct vm *vm, lua_State *L)
{
    lua_State *stopped = vm->stopped;

    vm->stopped = NULL;
    if (!stopped || mark_of(stopped))
        return;
    lua_pushlightuserdata(L, (void *)ABANDONED);
    lua_xmove(L, stopped, 1);
}

/* --- resume -------------------------------------------------------------------------------------- */

static bool has_frames(lua_State *co)
{
    lua_Debug ar;

    return lua_getstack(co, 0, &ar) == 1;
}

/* In Lua's own words, for programs that look at them. */
static const char *refusal(lua_State *L, lua_State *co, const struct link *links)
{
    const char *mark;

    switch (lua_status(co)) {
    case LUA_YIELD:
        mark = mark_of(co);
        if (unlikely(mark))
            return mark == WAITING ? "cannot resume non-suspended coroutine"
                                   : "cannot resume dead coroutine";
        break;
    case 0:
        if (co == L || has_frames(co))
            return "cannot resume non-suspended coroutine";
        if (lua_gettop(co) == 0)
            return "cannot resume dead coroutine";
        break;
    default: return "cannot resume dead coroutine";
    }
    return unlikely(links && links->depth >= DEPTH_MAX) ? "C stack overflow" : NULL;
}

/* Moves COUNT values, TRUE or FALSE before them. */
static int pass_values(lua_State *from, lua_State *to, bool ok, int count)
{
    if (unlikely(!lua_checkstack(to, count + 1))) {
        lua_pushboolean(to, false);
        lua_pushliteral(to, "too many results to resume");
        return 2;
    }
    lua_pushboolean(to, ok);
    lua_xmove(from, to, count);
    return count + 1;
}

static int pass_error(lua_State *from, lua_State *to)
{
    trace_note_coroutine(to, from);
    return pass_values(from, to, false, 1);
}

static bool is_waiting(const struct vm *vm)
{
    return vm->running && vm->running->state != T_RUNNING;
}

/* The end of a slice comes by from inside (vm/stop.h): L yields in turn, if it can. */
static int pass_stop(lua_State *L, struct vm *vm)
{
    coroutine_bury_stopped(vm, L);
    if (!lua_isyieldable(L)) {
        vm_push_error(L, "cancelled", vm->running->reason);
        return lua_error(L);
    }
    vm->stopped = L;
    lua_pushlightuserdata(L, (void *)ABANDONED);
    return lua_yield(L, lua_gettop(L));
}

/* The coroutine stays at 1, so that it is alive while this waits. */
static int resume(lua_State *L, lua_State *co, struct vm *vm)
{
    int         nargs = lua_gettop(L) - 1;
    struct link link  = { co, L, vm->links, vm->links ? vm->links->depth + 1 : 1 };
    int         status;

    if (unlikely(!lua_checkstack(co, nargs + 1)))
        return luaL_error(L, "too many arguments to resume");
    lua_xmove(L, co, nargs);
    vm->links = &link;
    status    = lua_resume(co, nargs);
    vm->links = link.outer;

    if (unlikely(vm->stopped))
        return pass_stop(L, vm);
    if (likely(status == 0 || (status == LUA_YIELD && !is_waiting(vm))))
        return pass_values(co, L, true, lua_gettop(co));
    if (status == LUA_YIELD)
        return coroutine_suspend(L);
    return pass_error(co, L);
}

static lua_State *check_coroutine(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);

    if (unlikely(!co))
        luaL_typerror(L, 1, "coroutine");
    return co;
}

static int refuse(lua_State *L, const char *why)
{
    lua_pushstring(L, why);
    return 2;
}

/* resume(co, ...) -> true, ... | false, error */
static int coroutine_resume(lua_State *L)
{
    lua_State  *co  = check_coroutine(L);
    struct vm  *vm  = vm_of(L);
    const char *why = refusal(L, co, vm->links);

    if (likely(!why))
        return resume(L, co, vm);
    lua_pushboolean(L, false);
    return refuse(L, why);
}

/* step(co, ...) -> true, ... | false, error | nil, message: for coroutine.wrap */
static int coroutine_step(lua_State *L)
{
    lua_State  *co  = check_coroutine(L);
    struct vm  *vm  = vm_of(L);
    const char *why = refusal(L, co, vm->links);

    if (likely(!why))
        return resume(L, co, vm);
    lua_pushnil(L);
    return refuse(L, why);
}

/* status(co) -> "running" | "suspended" | "normal" | "dead" */
static int coroutine_status(lua_State *L)
{
    lua_State  *co   = check_coroutine(L);
    const char *mark = mark_of(co);

    if (co == L)
        lua_pushliteral(L, "running");
    else if (mark)
        lua_pushstring(L, mark == WAITING ? "normal" : "dead");
    else if (lua_status(co) == LUA_YIELD ||
             (lua_status(co) == 0 && !has_frames(co) && lua_gettop(co)))
        lua_pushliteral(L, "suspended");
    else
        lua_pushstring(L, lua_status(co) == 0 && has_frames(co) ? "normal" : "dead");
    return 1;
}

/* running() -> co | nil. Who has seen a task's coroutine may keep it and know it again, so this
 * one does not serve another task. */
static int coroutine_running(lua_State *L)
{
    struct task *task = vm_of(L)->running;

    if (lua_pushthread(L))
        lua_pushnil(L);
    if (task && task->co.L == L)
        task->exposed = true;
    return 1;
}

/* yield(...) -> what the next resume is given. A task's own level has nobody who takes what it yields,
 * and the scheduler could end the task only past every pcall. */
static int coroutine_yield(lua_State *L)
{
    const struct task *task = vm_of(L)->running;

    if (likely(!task || task->co.L != L))
        return lua_yield(L, lua_gettop(L));
    trace_push_where(L);
    lua_pushliteral(L, "coroutine.yield outside of a coroutine: this code was not resumed by "
                       "coroutine.resume or coroutine.wrap, so nobody takes what it yields");
    lua_concat(L, 2);
    return lua_error(L);
}

/* can_wait() -> boolean */
static int coroutine_can_wait(lua_State *L)
{
    lua_pushboolean(L, coroutine_reaches_task(L));
    return 1;
}

/* --- waits inside ---------------------------------------------------------------------------------- */

lua_State *coroutine_obstacle(const struct vm *vm, lua_State *L)
{
    lua_State *inner = L;

    if (!lua_isyieldable(inner))
        return inner;
    for (struct link *link = vm->links; link; link = link->outer) {
        if (link->co != inner)
            return inner; /* a C module resumed it */
        inner = link->resumer;
        if (!lua_isyieldable(inner))
            return inner;
    }
    return inner == vm->resumed ? NULL : inner;
}

bool coroutine_reaches_task(lua_State *L)
{
    const struct vm *vm = vm_of(L);

    return vm->running && !coroutine_obstacle(vm, L);
}

struct obstacle {
    const char *library, *field, *name, *way_round;
};

static const struct obstacle OBSTACLES[] = {
    { "table", "sort", "table.sort", "collect what the order needs first, then sort" },
    { "string", "gsub", "string.gsub", "collect the values first, or loop with string.gmatch" },
    { "string", "format", "string.format", "call tostring() on the argument first" },
    { "_G", "load", "load", "read the source first, then load it" },
};

/* Whether the function on top is library.field; pops nothing. */
static bool is_function(lua_State *L, const struct obstacle *obstacle)
{
    bool same = false;

    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, obstacle->library);
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, obstacle->field);
        same = lua_rawequal(L, -1, -4);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return same;
}

static const struct obstacle *known_obstacle(lua_State *L)
{
    for (size_t i = 0; i < ARRAY_LEN(OBSTACLES); i++)
        if (is_function(L, &OBSTACLES[i]))
            return &OBSTACLES[i];
    return NULL;
}

static const struct obstacle *find_obstacle(lua_State *L, lua_State *where)
{
    lua_Debug ar;

    for (int level = 1; lua_getstack(where, level, &ar); level++) {
        const struct obstacle *found;

        lua_getinfo(where, "f", &ar);
        lua_xmove(where, L, 1);
        found = lua_iscfunction(L, -1) ? known_obstacle(L) : NULL;
        lua_pop(L, 1);
        if (found)
            return found;
    }
    return NULL;
}

static const char *name_of_call(lua_State *L)
{
    lua_Debug ar;

    if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar) || !ar.name)
        return "this call";
    return ar.name;
}

int coroutine_raise_obstacle(lua_State *L, lua_State *where)
{
    const struct obstacle *obstacle;

    luaL_checkstack(L, 10, NULL);
    luaL_checkstack(where, 2, NULL);
    obstacle = find_obstacle(L, where);
    trace_push_where(L);
    if (obstacle)
        lua_pushfstring(L,
                        "%s cannot wait in a callback of %s, which cannot be left and entered "
                        "again: %s",
                        name_of_call(L), obstacle->name, obstacle->way_round);
    else
        lua_pushfstring(L,
                        "%s cannot wait here: a C function that calls back stands between this "
                        "code and its task, and cannot be left and entered again",
                        name_of_call(L));
    lua_concat(L, 2);
    return lua_error(L);
}

static struct hop *take_hop(struct sched *sched)
{
    struct hop *hop = sched->free_hops;

    if (!hop)
        return malloc(sizeof(*hop));
    sched->free_hops = hop->outer;
    return hop;
}

static void give_hop(struct sched *sched, struct hop *hop)
{
    hop->outer       = sched->free_hops;
    sched->free_hops = hop;
}

void coroutine_free_hops(struct sched *sched)
{
    while (sched->free_hops) {
        struct hop *hop = sched->free_hops;

        sched->free_hops = hop->outer;
        free(hop);
    }
}

/* Those of this slice stand before those that waited already. */
bool coroutine_note_hops(struct task *task)
{
    struct sched *sched = task->vm->sched;
    struct hop  **at    = &task->hops;

    for (struct link *link = task->vm->links; link; link = link->outer) {
        struct hop *hop = take_hop(sched);

        if (!hop)
            return false;
        hop->co    = link->co;
        hop->outer = *at;
        *at        = hop;
        at         = &hop->outer;
    }
    return true;
}

static lua_State *innermost(const struct task *task)
{
    return task->hops ? task->hops->co : task->co.L;
}

lua_State *coroutine_awaken(struct task *task)
{
    lua_State *L = innermost(task);

    lua_settop(L, -2);
    return L;
}

lua_State *coroutine_hand_on(struct task *task, lua_State *from, int status, int *nargs)
{
    struct hop *hop = task->hops;
    lua_State  *to;

    task->hops = hop->outer;
    give_hop(task->vm->sched, hop);
    to                = innermost(task);
    task->vm->resumed = to; /* where an error would be raised */
    lua_settop(to, -2);     /* the mark; FROM stays below, alive */
    if (status == 0 || status == LUA_YIELD)
        *nargs = pass_values(from, to, true, lua_gettop(from));
    else
        *nargs = pass_error(from, to);
    return to;
}

void coroutine_abandon(struct task *task)
{
    struct sched *sched = task->vm->sched;

    while (task->hops) {
        struct hop *hop = task->hops;

        mark_abandoned(hop->co);
        task->hops = hop->outer;
        give_hop(sched, hop);
    }
    if (task->co.L)
        mark_abandoned(task->co.L);
}

int coroutine_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "resume", coroutine_resume },
        { "step", coroutine_step },
        { "status", coroutine_status },
        { "running", coroutine_running },
        { "can_wait", coroutine_can_wait },
        { "yield", coroutine_yield },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    return 1;
}
