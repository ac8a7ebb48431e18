#include "bind/lhalf.h"

#include <stdint.h>

#include <lauxlib.h>

#include "bind/env.h"
#include "vm/sched.h"

/* Its address is the registry's key of the VM's struct kept. */
static const char KEY = 0;

struct kept {
    struct list halves;
    uint64_t    slice; /* in which they were made */
};

static void drop_all(struct kept *kept)
{
    struct list *node;

    while ((node = list_take_first(&kept->halves))) {
        struct lhalf *half = container_of(node, struct lhalf, link);

        half->drop(half);
    }
}

static int collect(lua_State *L)
{
    drop_all(lua_touserdata(L, 1));
    return 0;
}

static struct kept *kept_of(lua_State *L)
{
    struct kept *kept;

    lua_pushlightuserdata(L, (void *)&KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    kept = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return kept;
}

void lhalf_prepare(lua_State *L)
{
    struct kept *kept;

    if (kept_of(L))
        return;
    lua_pushlightuserdata(L, (void *)&KEY);
    kept        = lua_newuserdata(L, sizeof(*kept));
    kept->slice = 0;
    list_init(&kept->halves);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void lhalf_keep(lua_State *L, struct lhalf *half)
{
    struct kept *kept  = kept_of(L);
    uint64_t     slice = sched_slices(env_of(L)->sched);

    if (slice != kept->slice)
        drop_all(kept);
    kept->slice = slice;
    list_append(&kept->halves, &half->link);
}
