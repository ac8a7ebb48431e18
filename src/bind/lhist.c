#include "bind/lhist.h"

#include <lauxlib.h>

#include "base/hist.h"
#include "bind/lclass.h"
#include "bind/lfield.h"

#define HIST_METATABLE "srv.core.Hist"

static struct hist *check_hist(lua_State *L, int index)
{
    return luaL_checkudata(L, index, HIST_METATABLE);
}

struct hist *lhist_push(lua_State *L)
{
    return lclass_new(L, HIST_METATABLE, sizeof(struct hist));
}

/* hist:count() -> integer */
static int lhist_count(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)hist_count(check_hist(L, 1)));
    return 1;
}

/* hist:percentile(percent) -> number */
static int lhist_percentile(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)hist_percentile(check_hist(L, 1), luaL_checknumber(L, 2)));
    return 1;
}

/* hist:mean() -> number */
static int lhist_mean(lua_State *L)
{
    lua_pushnumber(L, hist_mean(check_hist(L, 1)));
    return 1;
}

/* hist:deviation() -> number */
static int lhist_deviation(lua_State *L)
{
    lua_pushnumber(L, hist_deviation(check_hist(L, 1)));
    return 1;
}

/* hist:since(older) -> hist: what was counted after OLDER was read from the same load */
static int lhist_since(lua_State *L)
{
    struct hist *newer = check_hist(L, 1), *older = check_hist(L, 2);
    struct hist *result = lhist_push(L);

    hist_merge(result, newer);
    hist_subtract(result, older);
    return 1;
}

/* hist:buckets() -> array of { low, high, count }, those that are not empty, in order */
static int lhist_buckets(lua_State *L)
{
    struct hist *hist = check_hist(L, 1);
    int          row  = 0;

    lua_newtable(L);
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&hist->counts[i], memory_order_relaxed);

        if (!count)
            continue;
        lua_createtable(L, 0, 3);
        lfield_set_number(L, "low", (lua_Number)hist_bucket_low(i));
        lfield_set_number(L, "high", (lua_Number)hist_bucket_high(i));
        lfield_set_number(L, "count", (lua_Number)count);
        lua_rawseti(L, -2, ++row);
    }
    return 1;
}

void lhist_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "count", lhist_count }, { "percentile", lhist_percentile },
        { "mean", lhist_mean },   { "deviation", lhist_deviation },
        { "since", lhist_since }, { "buckets", lhist_buckets },
        { NULL, NULL },
    };

    lclass_add(L, HIST_METATABLE, METHODS);
}
