#include "bind/lalarm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "ev/loop.h"
#include "vm/task.h"

#define ALARM_METATABLE "srv.core.Alarm"

/* The one of a VM; an upvalue of the module's functions. */
struct lalarm {
    int          fd; /* timerfd; -1 until first set */
    struct io    io;
    struct task *task; /* to be cancelled: the one that set it, which clears it before it ends */
    char        *why;  /* why it is; a cancelled task keeps a pointer to it */
    char        *why_held; /* the same while the loop's clock is held */
    bool         rung;
};

static struct lalarm *own(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

static void on_ring(int fd, short what, void *arg)
{
    struct lalarm *alarm = arg;

    io_stop(&alarm->io);
    alarm->rung = true;
    if (alarm->task)
        task_cancel(alarm->task, loop_clock_is_held(alarm->io.loop) ? alarm->why_held : alarm->why);
}

static void set_fd(struct lalarm *alarm, double seconds)
{
    double            whole = floor(seconds);
    struct itimerspec in    = { .it_value = { (time_t)whole, (long)((seconds - whole) * 1e9) } };

    timerfd_settime(alarm->fd, 0, &in, NULL);
}

static bool open_fd(struct lalarm *alarm, struct loop *loop)
{
    if (alarm->fd >= 0)
        return true;
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd < 0)
        return false;
    return io_start_level(&alarm->io, loop, alarm->fd, on_ring, alarm) == 0;
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
}

/* set(seconds, why, why_held): unless it is cleared by then, the running task is cancelled */
static int set(lua_State *L)
{
    struct lalarm *alarm   = own(L);
    double         seconds = luaL_checknumber(L, 1);
    const char    *why = luaL_checkstring(L, 2), *held = luaL_checkstring(L, 3);

    if (alarm->rung)
        return 0;
    if (!open_fd(alarm, env_of(L)->loop))
        return lerror_misuse(L, "no timer for the tests' time limit");
    set_text(&alarm->why, why);
    set_text(&alarm->why_held, held);
    alarm->task = task_root(task_current(L));
    set_fd(alarm, seconds);
    return 0;
}

/* clear(). Idempotent */
static int clear(lua_State *L)
{
    struct lalarm *alarm = own(L);

    alarm->task = NULL;
    if (alarm->fd >= 0)
        set_fd(alarm, 0);
    return 0;
}

static int alarm_gc(lua_State *L)
{
    struct lalarm *alarm = lua_touserdata(L, 1);

    io_stop(&alarm->io);
    if (alarm->fd >= 0)
        close(alarm->fd);
    free(alarm->why);
    free(alarm->why_held);
    return 0;
}

int lalarm_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "set", set }, { "clear", clear }, { NULL, NULL } };
    static const luaL_Reg METHODS[]   = { { "__gc", alarm_gc }, { NULL, NULL } };
    struct lalarm        *alarm;

    lclass_add(L, ALARM_METATABLE, METHODS);
    lua_newtable(L);
    alarm     = lclass_new(L, ALARM_METATABLE, sizeof(*alarm));
    alarm->fd = -1;
    luaL_openlib(L, NULL, FUNCTIONS, 1);
    return 1;
}
