#include "bind/ltest_port.h"

#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lhttp_dispatch.h"
#include "bind/lsite.h"
#include "ev/loop.h"
#include "http/serve.h"
#include "net/listener.h"
#include "vm/vm_state.h"

#define PORT_METATABLE "srv.core.TestPort"

/* Outlives its userdata until the loop's turn: closing tells exchanges, which no call from above may. */
struct test_port {
    struct lhttp         *http;
    struct lsite         *site;
    struct loop          *loop;
    struct listener      *listener;
    struct listener_watch watch;
    struct http_server   *server;
    struct later          closing;
};

struct ltest_port {
    struct handle     handle;
    struct test_port *port; /* NULL: closed */
};

static void dispatch(struct exchange *ex, void *arg)
{
    struct test_port *port = arg;

    lhttp_dispatch_to(port->http, port->site, ex);
}

static void on_accept(int fd, const struct addr *peer, void *arg)
{
    struct test_port *port = arg;

    http_server_accept(port->server, fd, peer);
}

/* --- life ------------------------------------------------------------------------------------- */

static void free_port(struct test_port *port)
{
    later_cancel(&port->closing);
    http_server_close(port->server);
    lsite_let_go(port->site);
    free(port);
}

static void on_closing(struct later *closing)
{
    free_port(container_of(closing, struct test_port, closing));
}

/* No connection is taken from here on. */
static void stop_listening(struct test_port *port)
{
    listener_watch_stop(&port->watch);
    listener_close(port->listener);
}

static void on_cut(struct handle *handle)
{
    struct ltest_port *own = container_of(handle, struct ltest_port, handle);

    if (!own->port)
        return;
    stop_listening(own->port);
    free_port(own->port);
    own->port = NULL;
}

static int listen_on_loopback(struct test_port *port, struct err *err)
{
    struct addr at;
    int         rc = addr_parse_host(&at, "127.0.0.1", 0, err);

    if (rc == 0)
        rc = listener_open(&port->listener, &at, 1, err);
    if (rc != 0)
        return rc;
    listener_watch_init(&port->watch, port->loop, on_accept, NULL, port);
    if (listener_watch_start(&port->watch, listener_fd(port->listener, 0)) == 0)
        return 0;
    rc = err_set_errno(err, "epoll");
    listener_close(port->listener);
    return rc;
}

static struct test_port *new_port(struct env *env, struct lsite *site, struct err *err)
{
    struct test_port  *port = calloc(1, sizeof(*port));
    struct http_limits limits;

    if (!port) {
        err_set(err, ERR_MEMORY, "no memory for a port");
        return NULL;
    }
    port->http = env->http;
    port->site = site;
    port->loop = env->loop;
    later_init(&port->closing, on_closing);
    if (listen_on_loopback(port, err) != 0) {
        free(port);
        return NULL;
    }
    http_limits_init(&limits);
    port->server = http_server_open(&(struct http_server_options){ .loop     = env->loop,
                                                                   .arenas   = env->arenas,
                                                                   .limits   = &limits,
                                                                   .dispatch = dispatch,
                                                                   .arg      = port });
    return port;
}

/* --- for Lua ----------------------------------------------------------------------------------- */

/* test_listen(site) -> port | nil, err */
static int test_listen(lua_State *L)
{
    struct env        *env  = env_of(L);
    struct lsite      *site = lsite_check(L, 1);
    struct err         err;
    struct ltest_port *own;

    luaL_argcheck(L, env->http, 1, "there is no server in this state");
    own             = lclass_new(L, PORT_METATABLE, sizeof(*own));
    own->handle.cut = on_cut;
    handle_link(&own->handle, vm_of(L));
    own->port = new_port(env, site, &err);
    if (own->port)
        lsite_hold(L, 1);
    return own->port ? 1 : lerror_nil(L, "unavailable", "%s", err.text);
}

static struct ltest_port *check_port(lua_State *L)
{
    return luaL_checkudata(L, 1, PORT_METATABLE);
}

/* port:url() -> "http://127.0.0.1:40001" */
static int port_url(lua_State *L)
{
    struct ltest_port *own = check_port(L);
    char               text[ADDR_TEXT_BYTES];

    if (!own->port)
        return 0;
    lua_pushfstring(L, "http://%s", addr_format(listener_addr(own->port->listener), text));
    return 1;
}

/* port:close(): connections are cut in the loop's next turn. Idempotent */
static int port_close(lua_State *L)
{
    struct ltest_port *own = check_port(L);

    if (!own->port)
        return 0;
    stop_listening(own->port);
    loop_later(own->port->loop, &own->port->closing);
    own->port = NULL;
    return 0;
}

static int port_gc(lua_State *L)
{
    struct ltest_port *own = lua_touserdata(L, 1);

    port_close(L);
    handle_unlink(&own->handle);
    return 0;
}

void ltest_port_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "url", port_url }, { "close", port_close }, { "__gc", port_gc }, { NULL, NULL }
    };

    lclass_add(L, PORT_METATABLE, METHODS);
    lua_pushcfunction(L, test_listen);
    lua_setfield(L, -2, "test_listen");
}
