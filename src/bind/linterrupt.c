#include "bind/linterrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ltask.h"
#include "ev/loop.h"
#include "vm/task.h"
#include "vm/waitq.h"

#define INTERRUPT_METATABLE "srv.core.Interrupt"

/* The first SIGINT, SIGTERM or SIGHUP is an event; from then on they end the process as ever, so that
 * whoever is in a hurry presses Ctrl-C twice. */
struct linterrupt {
    struct io    io;
    int          fd;     /* of the signals, -1 when they are not caught */
    int          number; /* of the signal that came; 0: none has */
    struct waitq waiters;
};

static void fill_caught(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

static void let_go(struct linterrupt *interrupt)
{
    sigset_t set;

    if (interrupt->fd < 0)
        return;
    io_stop(&interrupt->io);
    close(interrupt->fd);
    interrupt->fd = -1;
    fill_caught(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void on_signal(int fd, short what, void *arg)
{
    struct linterrupt      *interrupt = arg;
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != sizeof(info))
        return;
    interrupt->number = (int)info.ssi_signo;
    let_go(interrupt);
    waitq_wake_all(&interrupt->waiters);
}

/* catch() -> interrupt | nil, err */
static int linterrupt_catch(lua_State *L)
{
    struct linterrupt *interrupt = lclass_new(L, INTERRUPT_METATABLE, sizeof(*interrupt));
    struct err         err;
    sigset_t           set;

    waitq_init(&interrupt->waiters);
    fill_caught(&set);
    interrupt->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (interrupt->fd < 0 ||
        io_start_level(&interrupt->io, env_of(L)->loop, interrupt->fd, on_signal, interrupt) != 0) {
        err_set_errno(&err, "catching signals");
        return lerror_nil_err(L, NULL, &err);
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return 1;
}

static int push_number(lua_State *L, void *op)
{
    struct waiter     *waiter    = op;
    struct linterrupt *interrupt = waiter->owner;

    lua_pushinteger(L, interrupt->number);
    return 1;
}

/* interrupt:wait([seconds]) -> number of the signal | nil, err */
static int linterrupt_wait(lua_State *L)
{
    struct linterrupt *interrupt = luaL_checkudata(L, 1, INTERRUPT_METATABLE);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (interrupt->number) {
        lua_pushinteger(L, interrupt->number);
        return 1;
    }
    return waitq_wait(L, &interrupt->waiters, push_number, ltask_timeout_ms(L, 2),
                      ltask_push_timeout, NULL, interrupt);
}

/* interrupt:close(): signals end the process again */
static int linterrupt_close(lua_State *L)
{
    let_go(luaL_checkudata(L, 1, INTERRUPT_METATABLE));
    return 0;
}

int linterrupt_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "wait", linterrupt_wait },
        { "close", linterrupt_close },
        { "__gc", linterrupt_close },
        { NULL, NULL },
    };
    static const luaL_Reg FUNCTIONS[] = { { "catch", linterrupt_catch }, { NULL, NULL } };

    lclass_add(L, INTERRUPT_METATABLE, METHODS);
    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
