#include "bind/ldict.h"

#include <math.h>
#include <stdbool.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/units.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lmarshal.h"
#include "data/dict.h"
#include "ev/loop.h"
#include "vm/sched.h"

#define DICT_METATABLE "srv.Shared"

enum {
    VALUE_BYTES_MAX = 1 << 30,
    KEPT_BYTES      = 256 * 1024, /* of a buffer between two calls */
    READERS         = 4,          /* calls inside each other */
};

/* One for each VM: upvalue 1 of every function. */
struct own {
    struct buf written[2]; /* values on their way into a dictionary; old and new */
    /* Values on their way into Lua. While one is being made there, a finalizer may read another. */
    struct buf read[READERS];
    unsigned   readers;
    uint64_t   slice; /* in which `readers` counts: an error does not count down */
};

struct ldict {
    struct dict *dict; /* the process's */
};

static struct own *own_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

static struct ldict *check_dict(lua_State *L)
{
    return luaL_checkudata(L, 1, DICT_METATABLE);
}

/* The one place where the time of dictionaries is read. */
static uint64_t now_ms(lua_State *L)
{
    return loop_now_ms(env_of(L)->loop);
}

/* --- arguments ---------------------------------------------------------------------------------- */

static struct str check_key(lua_State *L, const char *where)
{
    struct str key;

    if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
        lmarshal_misuse(L, where, "a key is a string");
    key.at = lua_tolstring(L, 2, &key.len);
    if (key.len > DICT_KEY_BYTES_MAX)
        lmarshal_misuse(L, where, "a key has at most 4096 bytes: use a hash of what is longer");
    return key;
}

/* Milliseconds of a number of seconds or a text like "5m"; 0 when there is none. */
static uint64_t check_ttl(lua_State *L, int index, const char *where)
{
    static const uint64_t LONGEST_MS = UINT64_C(1000) * 366 * 86400 * 1000;
    uint64_t              ms         = 0;
    struct str            text;

    if (lua_isnoneornil(L, index))
        return 0;
    if (lua_type(L, index) == LUA_TNUMBER) {
        double exact = ceil(lua_tonumber(L, index) * 1000);

        ms = exact > 0 && exact <= (double)LONGEST_MS ? (uint64_t)exact : 0;
    } else if (lua_type(L, index) == LUA_TSTRING) {
        text.at = lua_tolstring(L, index, &text.len);
        if (!units_duration_ms(text, &ms))
            ms = 0;
    }
    if (ms == 0)
        lmarshal_misuse(L, where,
                        "the time to live is a number of seconds above 0 or a text like "
                        "\"5m\"; without one a value is kept until room is needed");
    return ms;
}

/* The value at INDEX, not nil; its bytes are valid until the next call with the same TO. */
static struct dict_value check_value(lua_State *L, int index, const char *where, struct buf *to)
{
    buf_clear(to);
    buf_shrink(to, KEPT_BYTES);
    if (lua_type(L, index) == LUA_TNUMBER)
        return (struct dict_value){ .is_number = true, .number = lua_tonumber(L, index) };
    lmarshal_add(L, index, where, to);
    return (struct dict_value){ .bytes = buf_str(to) };
}

/* --- results ------------------------------------------------------------------------------------ */

static int push_boolean(lua_State *L, bool is)
{
    lua_pushboolean(L, is);
    return 1;
}

static int push_fault(lua_State *L, int rc, const struct dict *dict)
{
    if (rc == ERR_TOO_LARGE)
        return lerror_nil(L, "too_large",
                          "the value is larger than what this shared dictionary keeps under one "
                          "key, %d KiB: give it more bytes",
                          (int)(dict_entry_bytes_max(dict) / 1024));
    return lerror_nil(L, "unavailable", "no memory for a shared value");
}

static struct buf *next_reader(lua_State *L, struct own *own)
{
    uint64_t slice = sched_slices(env_of(L)->sched);

    if (own->slice != slice) {
        own->slice   = slice;
        own->readers = 0;
    }
    if (own->readers == READERS)
        luaL_error(L, "shared dictionaries are read in too many finalizers at once");
    return &own->read[own->readers++];
}

/* Pushes the value under KEY, or nil. */
static int push_value(lua_State *L, struct own *own, struct dict *dict, struct str key)
{
    struct buf       *bytes = next_reader(L, own);
    struct dict_value value;

    if (dict_get(dict, key, now_ms(L), &value, bytes) != 0)
        lua_pushnil(L);
    else if (value.is_number)
        lua_pushnumber(L, value.number);
    else if (!lmarshal_push(L, value.bytes))
        lua_pushnil(L);
    buf_clear(bytes);
    buf_shrink(bytes, KEPT_BYTES);
    own->readers--;
    return 1;
}

/* --- methods ------------------------------------------------------------------------------------ */

/* dict:get(key) -> v | nil */
static int ldict_get(lua_State *L)
{
    struct ldict *ldict = check_dict(L);

    return push_value(L, own_of(L), ldict->dict, check_key(L, "shared:get"));
}

typedef int (*set_fn)(struct dict *dict, struct str key, const struct dict_value *value,
                      uint64_t ttl_ms, uint64_t now_ms);

static int store(lua_State *L, const char *where, set_fn set)
{
    struct ldict     *ldict  = check_dict(L);
    struct own       *own    = own_of(L);
    struct str        key    = check_key(L, where);
    uint64_t          ttl_ms = check_ttl(L, 4, where);
    struct dict_value value;
    int               rc;

    if (lua_isnoneornil(L, 3))
        lmarshal_misuse(L, where, "nil cannot be kept: shared:delete(key) takes a value away");
    value = check_value(L, 3, where, &own->written[0]);
    rc = own->written[0].failed ? ERR_TOO_LARGE : set(ldict->dict, key, &value, ttl_ms, now_ms(L));
    if (rc == 0 || rc == ERR_EXISTS)
        return push_boolean(L, rc == 0);
    return push_fault(L, rc, ldict->dict);
}

/* dict:set(key, v, [ttl]) -> true | nil, err */
static int ldict_set(lua_State *L)
{
    return store(L, "shared:set", dict_set);
}

/* dict:add(key, v, [ttl]) -> boolean | nil, err */
static int ldict_add(lua_State *L)
{
    return store(L, "shared:add", dict_add);
}

/* dict:delete(key) -> boolean */
static int ldict_delete(lua_State *L)
{
    struct ldict *ldict = check_dict(L);

    return push_boolean(L, dict_delete(ldict->dict, check_key(L, "shared:delete"), now_ms(L)));
}

/* dict:incr(key, [by = 1], [ttl]) -> number | nil, err */
static int ldict_incr(lua_State *L)
{
    static const char WHERE[] = "shared:incr";
    struct ldict     *ldict   = check_dict(L);
    struct str        key     = check_key(L, WHERE);
    uint64_t          ttl_ms  = check_ttl(L, 4, WHERE);
    double            sum;
    int               rc;

    if (!lua_isnoneornil(L, 3) && lua_type(L, 3) != LUA_TNUMBER)
        lmarshal_misuse(L, WHERE, "what is added is a number");
    rc = dict_incr(ldict->dict, key, luaL_optnumber(L, 3, 1), ttl_ms, now_ms(L), &sum);
    if (rc == ERR_INVALID)
        return lmarshal_misuse(L, WHERE, "what is kept under this key is no number");
    if (rc != 0)
        return push_fault(L, rc, ldict->dict);
    lua_pushnumber(L, sum);
    return 1;
}

/* dict:cas(key, old, new) -> boolean | nil, err: nil stands for no value */
static int ldict_cas(lua_State *L)
{
    static const char WHERE[] = "shared:cas";
    struct ldict     *ldict   = check_dict(L);
    struct own       *own     = own_of(L);
    struct str        key     = check_key(L, WHERE);
    struct dict_value old, value;
    bool              has_old = !lua_isnoneornil(L, 3), has_value = !lua_isnoneornil(L, 4);
    int               rc;

    buf_clear(&own->written[0]);
    buf_clear(&own->written[1]);
    if (has_old)
        old = check_value(L, 3, WHERE, &own->written[0]);
    if (has_value)
        value = check_value(L, 4, WHERE, &own->written[1]);
    rc = own->written[0].failed || own->written[1].failed
             ? ERR_TOO_LARGE
             : dict_cas(ldict->dict, key, has_old ? &old : NULL, has_value ? &value : NULL,
                        now_ms(L));
    if (rc == 0 || rc == ERR_EXISTS)
        return push_boolean(L, rc == 0);
    return push_fault(L, rc, ldict->dict);
}

/* open(name, bytes) -> dict, bytes | nil, err: 0 is the default size; BYTES are what it has */
static int ldict_new(lua_State *L)
{
    struct env   *env = env_of(L);
    struct ldict *ldict;
    struct str    name;
    double        bytes = luaL_checknumber(L, 2);
    struct err    err;
    int           rc;

    name.at = luaL_checklstring(L, 1, &name.len);
    if (!env->dicts)
        return lerror_nil(L, "unavailable", "no shared dictionaries are lent to this VM");
    ldict = lua_newuserdata(L, sizeof(*ldict));
    luaL_getmetatable(L, DICT_METATABLE);
    lua_setmetatable(L, -2);
    rc = dicts_get(&ldict->dict, env->dicts, name, (uint64_t)bytes, &err);
    if (rc == ERR_INVALID || rc == ERR_TOO_LARGE)
        return lmarshal_misuse(L, "srv.shared", err.text);
    if (rc != 0)
        return lerror_nil(L, "unavailable", "%s", err.text);
    lua_pushnumber(L, (double)dict_bytes(ldict->dict));
    return 2;
}

/* --- the module ----------------------------------------------------------------------------------- */

static int own_gc(lua_State *L)
{
    struct own *own = lua_touserdata(L, 1);

    for (unsigned i = 0; i < ARRAY_LEN(own->written); i++)
        buf_fini(&own->written[i]);
    for (unsigned i = 0; i < READERS; i++)
        buf_fini(&own->read[i]);
    return 0;
}

static void push_own(lua_State *L)
{
    struct own *own = lua_newuserdata(L, sizeof(*own));

    *own = (struct own){ .readers = 0 };
    for (unsigned i = 0; i < ARRAY_LEN(own->written); i++)
        buf_init(&own->written[i], VALUE_BYTES_MAX);
    for (unsigned i = 0; i < READERS; i++)
        buf_init(&own->read[i], VALUE_BYTES_MAX);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, own_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
}

int ldict_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "get", ldict_get },   { "set", ldict_set },
                                        { "add", ldict_add },   { "delete", ldict_delete },
                                        { "incr", ldict_incr }, { "cas", ldict_cas },
                                        { NULL, NULL } };

    lmarshal_prepare(L);
    lua_newtable(L);
    lua_pushcfunction(L, ldict_new);
    lua_setfield(L, -2, "open");
    luaL_newmetatable(L, DICT_METATABLE);
    push_own(L);
    luaL_setfuncs(L, METHODS, 1);
    lua_pushliteral(L, DICT_METATABLE);
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_setfield(L, -2, "Dict");
    return 1;
}
