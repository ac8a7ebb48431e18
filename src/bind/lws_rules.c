#include "bind/lws_rules.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lfield.h"
#include "bind/lws_state.h"

#define RULES_METATABLE "srv.core.WebSocketRules"

/* The userdata. */
struct handle_of_rules {
    struct lws_rules *rules;
};

struct lws_rules *lws_rules_check(lua_State *L, int index)
{
    const struct handle_of_rules *handle = luaL_checkudata(L, index, RULES_METATABLE);

    return handle->rules;
}

/* --- life ------------------------------------------------------------------------------------------ */

struct lws_rules *lws_rules_keep(struct lws_rules *rules)
{
    rules->holders++;
    return rules;
}

void lws_rules_let_go(struct lws_rules *rules)
{
    lua_State *L = rules->vm->L;

    if (--rules->holders)
        return;
    luaL_unref(L, LUA_REGISTRYINDEX, rules->open_ref);
    luaL_unref(L, LUA_REGISTRYINDEX, rules->message_ref);
    luaL_unref(L, LUA_REGISTRYINDEX, rules->close_ref);
    for (unsigned i = 0; i < rules->protocol_count; i++)
        free((char *)rules->protocols[i].at);
    free(rules);
}

int lws_rules_protocol(const struct lws_rules *rules, struct str name)
{
    for (unsigned i = 0; i < rules->protocol_count; i++)
        if (str_is(rules->protocols[i], name))
            return (int)i;
    return -1;
}

static int rules_gc(lua_State *L)
{
    struct handle_of_rules *handle = lua_touserdata(L, 1);

    if (handle->rules)
        lws_rules_let_go(handle->rules);
    return 0;
}

/* Pushes the userdata. */
static struct lws_rules *push_new(lua_State *L)
{
    struct handle_of_rules *handle = lclass_new(L, RULES_METATABLE, sizeof(*handle));
    struct lws_rules       *rules  = calloc(1, sizeof(*rules));

    if (!rules)
        luaL_error(L, "not enough memory");
    rules->holders  = 1;
    rules->vm       = vm_of(L);
    rules->open_ref = rules->message_ref = rules->close_ref = LUA_NOREF;
    handle->rules                                           = rules;
    return rules;
}

/* --- making ------------------------------------------------------------------------------------------ */

static int field_ref(lua_State *L, int table, const char *name)
{
    lua_getfield(L, table, name);
    if (lua_isfunction(L, -1))
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

/* False: that was the last. */
static bool add_protocol(lua_State *L, struct lws_rules *rules, struct str name)
{
    char *copy;

    if (!name.at)
        return false;
    copy = strndup(name.at, name.len);
    if (!copy)
        luaL_error(L, "not enough memory");
    rules->protocols[rules->protocol_count++] = str_make(copy, name.len);
    return true;
}

static void take_protocols(lua_State *L, int table, struct lws_rules *rules)
{
    bool more;

    lua_getfield(L, table, "protocols");
    more = lua_istable(L, -1);
    for (int i = 1; more && i <= LWS_PROTOCOLS_MAX; i++) {
        lua_rawgeti(L, -1, i);
        more = add_protocol(L, rules, lstr_at(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* rules { limit, buffer, heartbeat, message_timeout (seconds; 0: none), compress, closes, client, events, protocols, open, message,
 * close } -> rules */
static int new_rules(lua_State *L)
{
    struct lws_rules *rules;

    luaL_checktype(L, 1, LUA_TTABLE);
    rules                       = push_new(L);
    rules->options.limit        = (uint64_t)lfield_number(L, 1, "limit");
    rules->options.buffer       = (uint64_t)lfield_number(L, 1, "buffer");
    rules->options.heartbeat_ms = (uint64_t)(lfield_number(L, 1, "heartbeat") * 1000);
    rules->options.message_ms   = (uint64_t)(lfield_number(L, 1, "message_timeout") * 1000);
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
    static const luaL_Reg METHODS[] = { { "__gc", rules_gc }, { NULL, NULL } };

    lclass_add(L, RULES_METATABLE, METHODS);
    lua_pushcfunction(L, new_rules);
    lua_setfield(L, -2, "rules");
}
