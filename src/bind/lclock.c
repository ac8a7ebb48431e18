#include "bind/lclock.h"

#include <lauxlib.h>

#include "base/clock.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ltask.h"
#include "ev/advance.h"
#include "ev/pool.h"
#include "vm/task.h"

#define CLOCK_METATABLE "srv.core.Clock"

/* The one of a VM; an upvalue of the module's functions. */
struct lclock {
    struct env    *env;
    struct advance advance;
    struct task   *waiter; /* who has asked for the advance; NULL: nobody, or it was cancelled */
    bool           held;   /* by this VM */
};

static bool has_jobs(struct lane *lane)
{
    struct lane_stats stats;

    if (!lane)
        return false;
    lane_stats(lane, &stats);
    return stats.queued + stats.running > 0;
}

static bool is_busy(void *arg)
{
    const struct lclock *clock = arg;
    const struct env    *env   = clock->env;

    return has_jobs(env->lane_file) || has_jobs(env->lane_cpu) || has_jobs(env->lane_sqlite);
}

static void on_done(void *arg)
{
    struct lclock *clock = arg;

    if (clock->waiter)
        task_wake(clock->waiter);
}

static struct lclock *own(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* hold(): time stands */
static int hold(lua_State *L)
{
    struct lclock *clock = own(L);

    if (!clock->env->under_test)
        return lerror_misuse(
            L, "srv.test.clock: a running server's clock cannot be held; it is for specs, "
               "which `srv test` runs");
    clock->held = true;
    loop_hold_clock(clock->env->loop);
    return 0;
}

static void let_go(struct lclock *clock)
{
    if (!clock->held)
        return;
    clock->held = false;
    if (clock->advance.running)
        on_done(clock);
    advance_stop(&clock->advance);
    loop_release_clock(clock->env->loop);
}

/* release(): it runs again; whoever waits for an advance goes on. Idempotent */
static int release(lua_State *L)
{
    let_go(own(L));
    return 0;
}

/* is_held() -> boolean */
static int is_held(lua_State *L)
{
    lua_pushboolean(L, own(L)->held);
    return 1;
}

static int push_done(lua_State *L, void *op)
{
    struct lclock *clock = op;

    clock->waiter = NULL;
    return 0;
}

static void disarm(void *op)
{
    struct lclock *clock = op;

    clock->waiter = NULL;
    advance_stop(&clock->advance);
}

/* advance(seconds): waits until the clock has been moved so far and all that was due has run */
static int advance(lua_State *L)
{
    struct lclock *clock = own(L);
    uint64_t       ms    = ltask_timeout_ms(L, 1), ns;

    if (!clock->held)
        return lerror_misuse(
            L, "clock:advance: the clock runs by itself again; take a new srv.test.clock()");
    if (clock->waiter)
        return lerror_misuse(L, "clock:advance: another task advances it already");
    if (__builtin_mul_overflow(ms, (uint64_t)NS_PER_MS, &ns))
        return lerror_misuse(L, "clock:advance: that is too far");
    clock->waiter = task_current(L);
    advance_start(&clock->advance, ns);
    return task_wait(L, clock, disarm, push_done);
}

static int clock_gc(lua_State *L)
{
    let_go(lua_touserdata(L, 1));
    return 0;
}

int lclock_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "hold", hold },       { "release", release }, { "is_held", is_held },
        { "advance", advance }, { NULL, NULL },
    };
    static const luaL_Reg METHODS[] = { { "__gc", clock_gc }, { NULL, NULL } };
    struct lclock        *clock;

    lclass_add(L, CLOCK_METATABLE, METHODS);
    lua_newtable(L);
    clock      = lclass_new(L, CLOCK_METATABLE, sizeof(*clock));
    clock->env = env_of(L);
    advance_init(&clock->advance, clock->env->loop, is_busy, on_done, clock);
    luaL_openlib(L, NULL, FUNCTIONS, 1);
    return 1;
}
