#include "bind/lws.h"

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lfield.h"
#include "bind/lws_client.h"
#include "bind/lws_head.h"
#include "bind/lws_relay.h"
#include "bind/lws_rules.h"
#include "bind/lws_socket.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "bind/lws_topics.h"
#include "bind/lws_upgrade.h"
#include "bind/lws_worker.h"

/* A userdata's environment is the globals' until it has one of its own. */
static bool push_own(lua_State *L)
{
    lua_getfenv(L, 1);
    if (!lua_rawequal(L, -1, LUA_GLOBALSINDEX))
        return true;
    lua_pop(L, 1);
    return false;
}

/* own(ws, [make]) -> the table of what the app has hung on it, or nil */
static int ws_own(lua_State *L)
{
    lws_check(L, 1);
    if (push_own(L))
        return 1;
    if (!lua_toboolean(L, 2))
        return 0;
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfenv(L, 1);
    return 1;
}

/* head(ws) -> the request it began with (bind/lws_head.h), or nil: a client's */
static int ws_head(lua_State *L)
{
    const struct lws *socket = lws_check(L, 1);

    if (!socket->head)
        return 0;
    lws_head_push(L, socket->head);
    return 1;
}

/* is_served(ws) -> boolean: it began with a request to this app */
static int ws_is_served(lua_State *L)
{
    lua_pushboolean(L, lws_check(L, 1)->head != NULL);
    return 1;
}

/* counts() -> { open, received, sent, encoded, dropped } of this worker */
static int ws_counts_of(lua_State *L)
{
    struct lws_counts counts = lws_worker_counts(env_of(L)->sockets);

    lua_createtable(L, 0, 5);
    lfield_set_number(L, "open", (lua_Number)counts.open);
    lfield_set_number(L, "received", (lua_Number)counts.received);
    lfield_set_number(L, "sent", (lua_Number)counts.sent);
    lfield_set_number(L, "encoded", (lua_Number)counts.encoded);
    lfield_set_number(L, "dropped", (lua_Number)counts.dropped);
    return 1;
}

int lws_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "own", ws_own },
                                          { "head", ws_head },
                                          { "is_served", ws_is_served },
                                          { "counts", ws_counts_of },
                                          { NULL, NULL } };

    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    lws_client_register(L);
    lws_relay_register(L);
    lws_rules_register(L);
    lws_socket_register(L);
    lws_talk_register(L);
    lws_topics_register(L);
    lws_upgrade_register(L);
    return 1;
}
