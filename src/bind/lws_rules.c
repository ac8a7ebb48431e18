#include "bind/lws_rules.h"

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lfield.h"
#include "bind/lws_state.h"

#define RULES_METATABLE "srv.core.WebSocketRules"

struct lws_rules *lws_rules_check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, RULES_METATABLE);
}

static int field_ref(lua_State *L, int table, const char *name)
{
    lua_getfield(L, table, name);
    if (lua_isfunction(L, -1))
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

/* The texts live as long as the list, which is the object's environment. */
static void take_protocols(lua_State *L, int table, struct lws_rules *rules)
{
    lua_getfield(L, table, "protocols");
    for (int i = 1; lua_istable(L, -1) && i <= LWS_PROTOCOLS_MAX; i++) {
        struct str name;

        lua_rawgeti(L, -1, i);
        name = lstr_at(L, -1);
        lua_pop(L, 1);
        if (!name.at)
            break;
        rules->protocols[rules->protocol_count++] = name;
    }
    if (lua_istable(L, -1))
        lua_setfenv(L, -2);
    else
        lua_pop(L, 1);
}

/* rules { limit, buffer, heartbeat (seconds; 0: none), compress, closes, client, events, protocols, open, message,
 * close } -> rules */
static int new_rules(lua_State *L)
{
    struct lws_rules *rules;

    luaL_checktype(L, 1, LUA_TTABLE);
    rules                       = lclass_new(L, RULES_METATABLE, sizeof(*rules));
    rules->options.limit        = (uint64_t)lfield_number(L, 1, "limit");
    rules->options.buffer       = (uint64_t)lfield_number(L, 1, "buffer");
    rules->options.heartbeat_ms = (uint64_t)(lfield_number(L, 1, "heartbeat") * 1000);
    rules->options.client       = lfield_bool(L, 1, "client");
    rules->compresses           = lfield_bool(L, 1, "compress");
    rules->closes_when_full     = lfield_bool(L, 1, "closes");
    rules->is_table             = lfield_bool(L, 1, "events");
    rules->open_ref             = field_ref(L, 1, "open");
    rules->message_ref          = field_ref(L, 1, "message");
    rules->close_ref            = field_ref(L, 1, "close");
    take_protocols(L, 1, rules);
    return 1;
}

void lws_rules_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { NULL, NULL } };

    lclass_add(L, RULES_METATABLE, METHODS);
    lua_pushcfunction(L, new_rules);
    lua_setfield(L, -2, "rules");
}
