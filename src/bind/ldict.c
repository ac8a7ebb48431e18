#include "bind/ldict.h"

#include <math.h>
#include <stdbool.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/ldict_lease.h"
#include "bind/ldict_object.h"
#include "bind/lerror.h"
#include "bind/lmarshal.h"
#include "bind/lstr.h"
#include "data/dict.h"

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

/* --- methods ------------------------------------------------------------------------------------ */

/* dict:get(key) -> v | nil */
static int ldict_get(lua_State *L)
{
    struct ldict *ldict = ldict_check(L);

    return ldict_push_value(L, ldict_own(L), ldict->dict, ldict_check_key(L, "shared:get"));
}

typedef int (*set_fn)(struct dict *dict, struct str key, const struct dict_value *value,
                      uint64_t ttl_ms, uint64_t now_ms);

static int store(lua_State *L, const char *where, set_fn set)
{
    struct ldict     *ldict  = ldict_check(L);
    struct ldict_own *own    = ldict_own(L);
    struct str        key    = ldict_check_key(L, where);
    uint64_t          ttl_ms = ldict_check_ttl(L, 4, where);
    struct dict_value value;
    int               rc;

    if (lua_isnoneornil(L, 3))
        lerror_misuse(L, "%s: nil cannot be kept: shared:delete(key) takes a value away", where);
    value = ldict_check_value(L, 3, ldict->dict, where, &own->written[0]);
    rc    = own->written[0].failed ? ERR_TOO_LARGE
                                   : set(ldict->dict, key, &value, ttl_ms, ldict_now_ms(L));
    if (rc == 0 || rc == ERR_EXISTS || rc == ERR_NOT_FOUND)
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

/* dict:replace(key, v, [ttl]) -> boolean | nil, err: only if there is a value */
static int ldict_replace(lua_State *L)
{
    return store(L, "shared:replace", dict_replace);
}

/* dict:delete(key) -> boolean */
static int ldict_delete(lua_State *L)
{
    struct ldict *ldict = ldict_check(L);

    return push_boolean(
        L, dict_delete(ldict->dict, ldict_check_key(L, "shared:delete"), ldict_now_ms(L)));
}

/* dict:incr(key, [by = 1], [ttl]) -> number | nil, err */
static int ldict_incr(lua_State *L)
{
    static const char WHERE[] = "shared:incr";
    struct ldict     *ldict   = ldict_check(L);
    struct str        key     = ldict_check_key(L, WHERE);
    uint64_t          ttl_ms  = ldict_check_ttl(L, 4, WHERE);
    double            sum;
    int               rc;

    if (!lua_isnoneornil(L, 3) &&
        (lua_type(L, 3) != LUA_TNUMBER || isnan(lua_tonumber(L, 3)))) /* it would never go away */
        lerror_misuse(L, "%s: what is added is a number", WHERE);
    rc = dict_incr(ldict->dict, key, luaL_optnumber(L, 3, 1), ttl_ms, ldict_now_ms(L), &sum);
    if (rc == ERR_INVALID)
        return lerror_misuse(L, "%s: what is kept under this key is no number", WHERE);
    if (rc != 0)
        return push_fault(L, rc, ldict->dict);
    lua_pushnumber(L, sum);
    return 1;
}

/* dict:cas(key, old, new) -> boolean | nil, err: nil stands for no value */
static int ldict_cas(lua_State *L)
{
    static const char WHERE[] = "shared:cas";
    struct ldict     *ldict   = ldict_check(L);
    struct ldict_own *own     = ldict_own(L);
    struct str        key     = ldict_check_key(L, WHERE);
    struct dict_value old, value;
    bool              has_old = !lua_isnoneornil(L, 3), has_value = !lua_isnoneornil(L, 4);
    int               rc;

    buf_clear(&own->written[0]);
    buf_clear(&own->written[1]);
    if (has_old)
        old = ldict_check_value(L, 3, ldict->dict, WHERE, &own->written[0]);
    if (has_value)
        value = ldict_check_value(L, 4, ldict->dict, WHERE, &own->written[1]);
    rc = own->written[0].failed || own->written[1].failed
             ? ERR_TOO_LARGE
             : dict_cas(ldict->dict, key, has_old ? &old : NULL, has_value ? &value : NULL,
                        ldict_now_ms(L));
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

    name = lstr_check(L, 1);
    if (!env->dicts)
        return lerror_nil(L, "unavailable", "no shared dictionaries are lent to this VM");
    ldict = lclass_new(L, LDICT_METATABLE, sizeof(*ldict));
    rc    = dicts_get(&ldict->dict, env->dicts, name, (uint64_t)bytes, &err);
    if (rc == ERR_INVALID || rc == ERR_TOO_LARGE)
        return lerror_misuse(L, "srv.shared: %s", err.text);
    if (rc != 0)
        return lerror_nil(L, "unavailable", "%s", err.text);
    lua_pushnumber(L, (double)dict_bytes(ldict->dict));
    return 2;
}

/* --- the module ----------------------------------------------------------------------------------- */

int ldict_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "get", ldict_get },       { "set", ldict_set },
                                        { "add", ldict_add },       { "replace", ldict_replace },
                                        { "delete", ldict_delete }, { "incr", ldict_incr },
                                        { "cas", ldict_cas },       { "wait", ldict_wait },
                                        { "claim", ldict_claim },   { NULL, NULL } };

    lmarshal_prepare(L);
    lua_newtable(L);
    lua_pushcfunction(L, ldict_new);
    lua_setfield(L, -2, "open");
    ldict_push_lease_class(L);
    lua_setfield(L, -2, "Lease");
    ldict_push_own(L);
    lclass_push(L, LDICT_METATABLE, METHODS, 1);
    lua_setfield(L, -2, "Dict");
    return 1;
}
