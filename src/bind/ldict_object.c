#include "bind/ldict_object.h"

#include <math.h>
#include <stdbool.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/units.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lmarshal.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "data/dict.h"
#include "ev/loop.h"
#include "vm/sched.h"

enum {
    VALUE_BYTES_MAX = 1 << 30,
    KEPT_BYTES      = 256 * 1024, /* of a buffer between two calls */
};

/* --- the VM's own ---------------------------------------------------------------------------- */

static int own_gc(lua_State *L)
{
    struct ldict_own *own = lua_touserdata(L, 1);

    for (unsigned i = 0; i < ARRAY_LEN(own->written); i++)
        buf_fini(&own->written[i]);
    for (unsigned i = 0; i < LDICT_READERS; i++)
        buf_fini(&own->read[i]);
    return 0;
}

void ldict_push_own(lua_State *L)
{
    struct ldict_own *own = lua_newuserdata(L, sizeof(*own));

    *own = (struct ldict_own){ .readers = 0 };
    list_init(&own->leases);
    for (unsigned i = 0; i < ARRAY_LEN(own->written); i++)
        buf_init(&own->written[i], VALUE_BYTES_MAX);
    for (unsigned i = 0; i < LDICT_READERS; i++)
        buf_init(&own->read[i], VALUE_BYTES_MAX);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, own_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
}

struct ldict_own *ldict_own(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

struct ldict *ldict_check(lua_State *L)
{
    return luaL_checkudata(L, 1, LDICT_METATABLE);
}

uint64_t ldict_now_ms(lua_State *L)
{
    return loop_now_ms(env_of(L)->loop);
}

/* --- arguments ---------------------------------------------------------------------------------- */

struct str ldict_check_key(lua_State *L, const char *where)
{
    struct str key;

    if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
        lerror_misuse(L, "%s: a key is a string", where);
    key = lstr_at(L, 2);
    if (key.len > DICT_KEY_BYTES_MAX)
        lerror_misuse(L, "%s: a key has at most 4096 bytes: use a hash of what is longer", where);
    return key;
}

/* A number of seconds or a text like "5m", rounded up. */
static bool read_duration(lua_State *L, int index, uint64_t *ms)
{
    static const double LONGEST_S = 1000.0 * 366 * 86400;
    struct str          text;
    double              seconds;

    if (lua_type(L, index) == LUA_TSTRING) {
        text = lstr_at(L, index);
        return units_duration_ms(text, ms);
    }
    seconds = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
    if (!(seconds >= 0 && seconds <= LONGEST_S))
        return false;
    *ms = (uint64_t)ceil(seconds * 1000);
    return true;
}

uint64_t ldict_check_timeout(lua_State *L, int index, const char *where)
{
    uint64_t ms;

    if (lua_isnoneornil(L, index))
        return UINT64_MAX;
    if (!read_duration(L, index, &ms))
        lerror_misuse(L, "%s: a time is a number of seconds or a text like \"250ms\"", where);
    return ms;
}

uint64_t ldict_check_ttl(lua_State *L, int index, const char *where)
{
    uint64_t ms;

    if (lua_isnoneornil(L, index))
        return 0;
    if (!read_duration(L, index, &ms) || ms == 0)
        lerror_misuse(L,
                      "%s: the time to live is a number of seconds above 0 or a text like "
                      "\"5m\"; without one a value is kept until room is needed",
                      where);
    return ms;
}

/* No more is written than the dictionary could keep: a small table that holds another many times over
 * may stand for more than there is memory. */
static void bound(struct buf *to, const struct dict *dict)
{
    size_t most = dict_entry_bytes_max(dict);

    buf_clear(to);
    buf_shrink(to, most < KEPT_BYTES ? most : KEPT_BYTES);
    to->bytes_max = most < VALUE_BYTES_MAX ? most : VALUE_BYTES_MAX;
}

struct dict_value ldict_check_value(lua_State *L, int index, const struct dict *dict,
                                    const char *where, struct buf *to)
{
    bound(to, dict);
    if (lua_type(L, index) == LUA_TNUMBER)
        return (struct dict_value){ .is_number = true, .number = lua_tonumber(L, index) };
    lmarshal_add(L, index, where, to);
    return (struct dict_value){ .bytes = buf_str(to) };
}

/* --- values out -------------------------------------------------------------------------------- */

static struct buf *next_reader(lua_State *L, struct ldict_own *own)
{
    uint64_t slice = sched_slices(env_of(L)->sched);

    if (own->slice != slice) {
        own->slice   = slice;
        own->readers = 0;
    }
    if (own->readers == LDICT_READERS)
        luaL_error(L, "shared dictionaries are read in too many finalizers at once");
    return &own->read[own->readers++];
}

int ldict_push_value(lua_State *L, struct ldict_own *own, struct dict *dict, struct str key)
{
    struct buf       *bytes = next_reader(L, own);
    struct dict_value value;

    if (dict_get(dict, key, ldict_now_ms(L), &value, bytes) != 0)
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
