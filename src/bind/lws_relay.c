#include "bind/lws_relay.h"

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lcall.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lsocket_lend.h"
#include "bind/lstr.h"
#include "bind/lws_upgrade.h"
#include "http/channel.h"
#include "http/relay.h"
#include "ws/ws_handshake.h"
#include "vm/vm_state.h"

#define RELAY_METATABLE "srv.core.WebSocketRelay"

struct lrelay {
    struct handle   handle;
    struct channel *there; /* to the other server; NULL: it was taken, cut, or is no more */
};

static void drop(struct lrelay *relay)
{
    if (relay->there)
        channel_abort(relay->there);
    relay->there = NULL;
}

/* The other server, or the state with its sockets, may go before the switch is made, if it is. */
static void on_gone(struct channel *channel, enum gone_why why)
{
    struct lrelay *relay = channel->arg;

    relay->there = NULL;
}

static const struct channel_user WAITING = { .on_gone = on_gone };

static void on_cut(struct handle *handle)
{
    drop(container_of(handle, struct lrelay, handle));
}

static int relay_gc(lua_State *L)
{
    struct lrelay *relay = lua_touserdata(L, 1);

    handle_unlink(&relay->handle);
    drop(relay);
    return 0;
}

/* relay(socket, early) -> relay | nil, err: SOCKET is a core of srv.core.socket that has switched; EARLY was read behind the
 * head */
static int new_relay(lua_State *L)
{
    struct lrelay *relay;
    struct str     early = lstr_check(L, 2);

    lua_settop(L, 2);
    relay             = lclass_new(L, RELAY_METATABLE, sizeof(*relay));
    relay->handle.cut = on_cut;
    handle_link(&relay->handle, vm_of(L));
    relay->there = lsocket_lend(L, 1, early);
    if (!relay->there)
        return lerror_nil(L, "closed", "the other server has gone");
    channel_take(relay->there, &WAITING, relay);
    return 1;
}

bool lws_relay_is(lua_State *L, int index)
{
    return lclass_is(L, index, RELAY_METATABLE);
}

static void on_over(void *env)
{
    env_guest_leave(env);
}

static void begin(struct lrelay *relay, struct channel *here, struct env *env)
{
    struct channel *there = relay->there;

    if (relay_start(here, there, on_over, env)) {
        relay->there = NULL;
        env_guest_enter(env);
    } else {
        channel_abort(here);
    }
}

/* The client's key is answered here: the other server has seen one of ours. */
bool lws_relay_upgrade(struct lcall *call, lua_State *L, int index)
{
    struct lrelay  *relay = lua_touserdata(L, index);
    struct ws_offer offer;
    struct channel *here;

    if (!relay->there || ws_accepts(&call->ex->request, &offer) != 0)
        return false;
    here = lws_upgrade_channel(call, &offer, STR(""), false);
    if (here)
        begin(relay, here, env_of(L));
    return here != NULL;
}

void lws_relay_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "__gc", relay_gc }, { NULL, NULL } };

    lclass_add(L, RELAY_METATABLE, METHODS);
    lua_pushcfunction(L, new_relay);
    lua_setfield(L, -2, "relay");
}
