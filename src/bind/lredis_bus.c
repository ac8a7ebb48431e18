#include "bind/lredis_bus.h"

#include <math.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/number.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lmarshal.h"
#include "bind/lredis_client.h"
#include "bind/lstr.h"
#include "data/bus.h"
#include "data/redis_bus.h"
#include "vm/vm.h"

#define BUS_METATABLE "srv.redis.Bus"

enum { VALUE_BYTES_MAX = 64 * 1024 * 1024 };

/* --- values ---------------------------------------------------------------------------------------------- */

/* A number is its digits, so that INCRBYFLOAT can add to it; the rest begins with a byte that no text
 * begins with (vm/marshal.h). */
static void add_value(lua_State *L, int index, const char *where, struct buf *to)
{
    char   digits[NUMBER_TEXT_MAX];
    double number = lua_tonumber(L, index);

    if (lua_type(L, index) == LUA_TNUMBER && isfinite(number))
        buf_add(to, digits, number_format(digits, number));
    else
        lmarshal_add(L, index, where, to);
}

/* encode(v, where) -> string | nil, err */
static int encode(lua_State *L)
{
    struct buf *bytes = lmarshal_buf(L);

    add_value(L, 1, luaL_checkstring(L, 2), bytes);
    if (bytes->failed)
        return lerror_nil(L, "too_large", "a value of more than %d MiB",
                          VALUE_BYTES_MAX / 1024 / 1024);
    lua_pushlstring(L, bytes->at, bytes->len);
    return 1;
}

static bool is_number(struct str text, double *value)
{
    struct number number;

    number_read(text, &number);
    *value = number.value;
    return number.kind != NUMBER_NONE && number.len == text.len;
}

/* decode(text) -> v | nil: another version of srv has written it */
static int decode(lua_State *L)
{
    struct str text;
    double     number;

    text = lstr_check(L, 1);
    if (is_number(text, &number))
        lua_pushnumber(L, number);
    else if (!lmarshal_push(L, text))
        lua_pushnil(L);
    return 1;
}

/* --- the bus ---------------------------------------------------------------------------------------------- */

struct lbus {
    struct handle     handle;
    struct redis_bus *bus; /* NULL: the VM goes */
};

static void let_go(struct handle *handle)
{
    struct lbus      *lbus = container_of(handle, struct lbus, handle);
    struct redis_bus *bus  = lbus->bus;

    lbus->bus = NULL;
    if (bus)
        redis_bus_let_go(bus);
}

static int bus_gc(lua_State *L)
{
    struct lbus *lbus = luaL_checkudata(L, 1, BUS_METATABLE);

    handle_unlink(&lbus->handle);
    let_go(&lbus->handle);
    return 0;
}

/* bus(client, prefix) -> bus */
static int new_bus(lua_State *L)
{
    struct redis_client *client = lredis_check_client(L, 1);
    struct lbus         *lbus;
    struct str           prefix;

    prefix = lstr_check(L, 2);
    luaL_argcheck(L, prefix.len + 8 < REDIS_BUS_PREFIX_MAX, 2, "the prefix is too long");
    lbus             = lclass_new(L, BUS_METATABLE, sizeof(*lbus));
    lbus->handle.cut = let_go;
    list_init(&lbus->handle.link);
    lbus->bus = redis_bus_get(client, env_of(L)->redis_hearing, prefix);
    if (!lbus->bus)
        return luaL_error(L, "not enough memory");
    handle_link(&lbus->handle, vm_of(L));
    return 1;
}

/* bus:publish(topic, v): arguments that the local bus has taken */
static int bus_publish_value(lua_State *L)
{
    struct lbus *lbus  = luaL_checkudata(L, 1, BUS_METATABLE);
    struct buf  *bytes = lmarshal_buf(L);
    struct str   topic;

    topic = lstr_check(L, 2);
    lmarshal_add(L, 3, "srv.bus.publish", bytes);
    if (lbus->bus && !bytes->failed)
        redis_bus_publish(lbus->bus, topic, buf_str(bytes));
    return 0;
}

/* bus:stats() -> { hears, up, sent, unsent, heard } */
static int bus_stats_of(lua_State *L)
{
    struct lbus           *lbus = luaL_checkudata(L, 1, BUS_METATABLE);
    struct redis_bus_stats now  = { .hears = false };

    if (lbus->bus)
        redis_bus_stats(lbus->bus, &now);
    lua_createtable(L, 0, 5);
    lfield_set_bool(L, "hears", now.hears);
    lfield_set_bool(L, "up", now.is_up);
    lfield_set_number(L, "sent", (lua_Number)now.sent);
    lfield_set_number(L, "unsent", (lua_Number)now.unsent);
    lfield_set_number(L, "heard", (lua_Number)now.heard);
    return 1;
}

/* --- the module -------------------------------------------------------------------------------------------- */

void lredis_bus_add(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "bus", new_bus }, { "encode", encode }, { "decode", decode }, { NULL, NULL }
    };
    static const luaL_Reg METHODS[] = { { "publish", bus_publish_value },
                                        { "stats", bus_stats_of },
                                        { "__gc", bus_gc },
                                        { NULL, NULL } };

    lmarshal_push_buf(L, VALUE_BYTES_MAX);
    lua_pushvalue(L, -1);
    lclass_push(L, BUS_METATABLE, METHODS, 1);
    lua_pop(L, 1);
    luaL_setfuncs(L, FUNCTIONS, 1);
}
