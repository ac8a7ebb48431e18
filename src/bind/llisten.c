#include "bind/llisten.h"

#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/err.h"
#include "base/log.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lsocket.h"
#include "net/listener.h"
#include "net/ports.h"
#include "vm/task.h"
#include "vm/vm_state.h"

#define LISTENER_METATABLE "srv.core.Listener"

enum { ACCEPTED_MAX = 64 }; /* taken from the kernel and not yet by the app */

struct accepted {
    int         fd;
    struct addr peer;
};

struct llistener {
    struct handle         handle;
    struct port          *port; /* NULL: closed */
    struct listener_watch watch;
    struct task          *task; /* that waits for a connection; NULL: nobody */
    unsigned              first, count;
    struct accepted       accepted[ACCEPTED_MAX];
};

/* --- life ------------------------------------------------------------------------------------- */

static void close_listener(struct llistener *l)
{
    if (!l->port)
        return;
    listener_watch_stop(&l->watch);
    for (; l->count > 0; l->count--, l->first = (l->first + 1) % ACCEPTED_MAX)
        close(l->accepted[l->first].fd);
    ports_give(l->port);
    l->port = NULL;
    if (l->task)
        task_wake(l->task);
}

static void on_cut(struct handle *handle)
{
    close_listener(container_of(handle, struct llistener, handle));
}

/* Where many are waiting to be taken, the kernel keeps the others. */
static void on_accept(int fd, const struct addr *peer, void *arg)
{
    struct llistener *l = arg;

    l->accepted[(l->first + l->count++) % ACCEPTED_MAX] = (struct accepted){ fd, *peer };
    if (l->count == ACCEPTED_MAX)
        listener_watch_stop(&l->watch);
    if (l->task)
        task_wake(l->task);
}

static void on_fault(int number, void *arg)
{
    struct llistener *l = arg;
    char              text[ADDR_TEXT_BYTES];

    log_warn("accepting paused", "address=%s reason=%s", addr_format(port_addr(l->port), text),
             strerror(number));
}

static struct llistener *check_listener(lua_State *L)
{
    return luaL_checkudata(L, 1, LISTENER_METATABLE);
}

static const char *code_of(int rc)
{
    return rc == ERR_INVALID || rc == ERR_TOO_LARGE ? "invalid" : "unavailable";
}

static int push_fault(lua_State *L, const struct err *err)
{
    return lerror_nil(L, code_of(err->code), "%s", err->text);
}

/* open("127.0.0.1:9000" | "unix:/run/x.sock") -> core | nil, err */
static int open_listener(lua_State *L)
{
    struct env       *env  = env_of(L);
    const char       *text = luaL_checkstring(L, 1);
    struct llistener *l;
    struct addr       at;
    struct err        err;

    if (!env->ports)
        return lerror_nil(L, "unavailable", "no sockets are lent to this VM");
    if (addr_parse(&at, text, &err) < 0)
        return push_fault(L, &err);
    l             = lclass_new(L, LISTENER_METATABLE, sizeof(*l));
    l->handle.cut = on_cut;
    list_init(&l->handle.link);
    listener_watch_init(&l->watch, env->loop, on_accept, on_fault, l);
    if (ports_take(&l->port, env->ports, &at, &err) < 0)
        return push_fault(L, &err);
    handle_link(&l->handle, vm_of(L));
    if (listener_watch_start(&l->watch, port_fd(l->port)) == 0)
        return 1;
    close_listener(l);
    return lerror_nil(L, "unavailable", "%s: cannot be watched", text);
}

static int listener_gc(lua_State *L)
{
    struct llistener *l = lua_touserdata(L, 1);

    handle_unlink(&l->handle);
    close_listener(l);
    return 0;
}

/* core:close(): whoever waits gets `closed` */
static int listener_lua_close(lua_State *L)
{
    close_listener(check_listener(L));
    return 0;
}

/* core:address() -> "127.0.0.1:41234" | nil */
static int listener_address(lua_State *L)
{
    struct llistener *l = check_listener(L);
    char              text[ADDR_TEXT_BYTES];

    if (!l->port)
        return 0;
    lua_pushstring(L, addr_format(port_addr(l->port), text));
    return 1;
}

/* --- taking ------------------------------------------------------------------------------------- */

/* A socket; false if it was lost. The listener has one. */
static int push_first(lua_State *L, struct llistener *l)
{
    struct accepted accepted = l->accepted[l->first];
    bool            pushed   = lsocket_push(L, accepted.fd, &accepted.peer);

    l->first = (l->first + 1) % ACCEPTED_MAX;
    l->count--;
    if (l->watch.fd < 0 && listener_watch_start(&l->watch, port_fd(l->port)) < 0)
        close_listener(l);
    if (!pushed)
        lua_pushboolean(L, false);
    return 1;
}

static int push_taken(lua_State *L, void *op)
{
    struct llistener *l = op;

    l->task = NULL;
    if (!l->port)
        return lerror_nil(L, "closed", "the listener is closed");
    if (l->count > 0)
        return push_first(L, l);
    lua_pushboolean(L, false);
    return 1;
}

static void disarm(void *op)
{
    struct llistener *l = op;

    l->task = NULL;
    close_listener(l);
}

/* core:accept() -> socket | false (again) | nil, err. When the task is cancelled, it closes. */
static int listener_accept(lua_State *L)
{
    struct llistener *l    = check_listener(L);
    struct task      *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    if (l->task)
        return lerror_nil(L, "busy", "another task takes this listener's connections");
    if (!l->port || l->count > 0)
        return push_taken(L, l);
    l->task = task;
    return task_wait(L, l, disarm, push_taken);
}

/* at_load() -> boolean: this runs while an app or a module loads, so what it opens is the app's */
static int at_load(lua_State *L)
{
    struct task *running = vm_of(L)->running;

    lua_pushboolean(L, !running || task_loads(running));
    return 1;
}

/* enter(): one more connection is served */
static int enter(lua_State *L)
{
    env_guest_enter(env_of(L));
    return 0;
}

/* leave(): it has ended */
static int leave(lua_State *L)
{
    env_guest_leave(env_of(L));
    return 0;
}

int llisten_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "open", open_listener },
                                          { "enter", enter },
                                          { "leave", leave },
                                          { "at_load", at_load },
                                          { NULL, NULL } };
    static const luaL_Reg METHODS[]   = { { "accept", listener_accept },
                                          { "close", listener_lua_close },
                                          { "address", listener_address },
                                          { "__gc", listener_gc },
                                          { NULL, NULL } };

    lclass_add(L, LISTENER_METATABLE, METHODS);
    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    return 1;
}
