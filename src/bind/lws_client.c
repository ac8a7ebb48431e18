#include "bind/lws_client.h"

#include <lauxlib.h>

#include "base/compiler.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lsocket_lend.h"
#include "bind/lws_rules.h"
#include "bind/lws_socket.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "ws/ws_handshake.h"
#include "vm/task.h"

#define ASK_METATABLE "srv.core.WebSocketAsk"

enum { FIELDS_MAX = 100 }; /* of an answer that are looked at */

struct lws_ask {
    struct ws_ask     ask;
    struct ws_deflate deflate;  /* as agreed on */
    int               protocol; /* the same: index in the rules; -1: none */
};

struct lws_client {
    struct lws        base;
    struct held       held;
    struct ws_deflate deflate;
};

static struct lws_ask *check_ask(lua_State *L, int index)
{
    return luaL_checkudata(L, index, ASK_METATABLE);
}

/* --- the handshake ------------------------------------------------------------------------------ */

/* ask("chat, superchat" | "", deflate) -> ask. The text is kept as the object's environment. */
static int new_ask(lua_State *L)
{
    struct str      protocols = lstr_check(L, 1);
    bool            deflate   = lua_toboolean(L, 2);
    struct lws_ask *ask       = lclass_new(L, ASK_METATABLE, sizeof(*ask));

    ws_ask_init(&ask->ask, protocols, deflate);
    ask->protocol = -1;
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 1);
    lua_setfenv(L, -2);
    return 1;
}

/* ask:fields() -> { { name, value }, ... }, beside Host */
static int ask_fields(lua_State *L)
{
    struct lws_ask *ask = check_ask(L, 1);
    struct field    fields[WS_ASK_FIELDS_MAX];
    unsigned        count = ws_ask_fields(&ask->ask, fields);

    lua_createtable(L, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        lua_createtable(L, 2, 0);
        lstr_push(L, fields[i].name);
        lua_rawseti(L, -2, 1);
        lstr_push(L, fields[i].value);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* The texts live in the list's entries. */
static unsigned read_fields(lua_State *L, int list, struct field *fields)
{
    unsigned count = 0;

    for (; count < FIELDS_MAX; count++) {
        lua_rawgeti(L, list, (int)count + 1);
        if (!lua_istable(L, -1))
            break;
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        fields[count] = (struct field){ .name = lstr_at(L, -2), .value = lstr_at(L, -1) };
        lua_pop(L, 3);
    }
    return count;
}

/* ask:check(status, { { lower name, value }, ... }, rules) -> true | nil, what is wrong with the answer */
static int ask_check(lua_State *L)
{
    struct lws_ask   *ask    = check_ask(L, 1);
    lua_Integer       status = luaL_checkinteger(L, 2);
    struct field      fields[FIELDS_MAX];
    struct ws_agreed  agreed;
    struct lws_rules *rules = lws_rules_check(L, 4);

    luaL_checktype(L, 3, LUA_TTABLE);
    if (!ws_check_answer(&ask->ask, (unsigned)status, fields, read_fields(L, 3, fields), &agreed)) {
        lua_pushnil(L);
        lua_pushstring(L, agreed.reason);
        return 2;
    }
    ask->deflate  = agreed.deflate;
    ask->protocol = lws_rules_protocol(rules, agreed.protocol);
    lua_pushboolean(L, true);
    return 1;
}

/* --- the socket ------------------------------------------------------------------------------------ */

static void on_task_end(struct held *held)
{
    lws_talk_close(&container_of(held, struct lws_client, held)->base, WS_CODE_GOING_AWAY, STR(""));
}

static struct lws_client *new_client(lua_State *L, struct lws_rules *rules,
                                     const struct lws_ask *ask)
{
    struct lws_client *client =
        container_of(lws_socket_new(L, sizeof(*client), rules), struct lws_client, base);

    client->held.release  = on_task_end;
    client->base.held     = &client->held;
    client->base.protocol = ask->protocol;
    list_init(&client->held.link);
    return client;
}

void *lws_client_new(lua_State *L, int rules, int ask)
{
    struct lws_client *client = new_client(L, lws_rules_check(L, rules), check_ask(L, ask));

    client->deflate = check_ask(L, ask)->deflate;
    lws_socket_hold(&client->base, L, -1);
    return client;
}

int lws_client_open(lua_State *L, void *made, struct channel *channel)
{
    struct lws_client *client  = made;
    struct ws_options  options = client->base.rules->options;

    options.deflate      = client->deflate.on;
    options.deflate_bits = client->deflate.bits;
    if (!channel || !lws_socket_open(&client->base, channel, &options)) {
        lws_socket_drop(&client->base);
        return lerror_nil(L, "unavailable", "no memory for a socket");
    }
    task_hold(task_current(L), &client->held);
    return 1;
}

/* over(socket, early, rules, ask) -> ws | nil, err: SOCKET is a core of srv.core.socket, that has switched; EARLY was
 * read behind the head */
static int client_over(lua_State *L)
{
    void      *client;
    struct str early = lstr_check(L, 2);

    lua_settop(L, 4);
    client = lws_client_new(L, 3, 4);
    return lws_client_open(L, client, lsocket_lend(L, 1, early));
}

void lws_client_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "fields", ask_fields },
                                        { "check", ask_check },
                                        { NULL, NULL } };

    lclass_add(L, ASK_METATABLE, METHODS);
    lua_pushcfunction(L, new_ask);
    lua_setfield(L, -2, "ask");
    lua_pushcfunction(L, client_over);
    lua_setfield(L, -2, "over");
}
