#include "bind/lasset.h"

#include <string.h>

#include <lauxlib.h>

#include "bind/embedded.h"

/* read("pages/bench.html") -> bytes | nil */
static int lasset_read(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);

    for (const struct asset *asset = ASSETS; asset->name; asset++) {
        if (strcmp(asset->name, name) != 0)
            continue;
        lua_pushlstring(L, asset->at, (size_t)(asset->end - asset->at));
        return 1;
    }
    return 0;
}

/* list("templates/api/") -> array of names that begin so, in order */
static int lasset_list(lua_State *L)
{
    size_t      len;
    const char *prefix = luaL_checklstring(L, 1, &len);
    int         count  = 0;

    lua_newtable(L);
    for (const struct asset *asset = ASSETS; asset->name; asset++) {
        if (strncmp(asset->name, prefix, len) != 0)
            continue;
        lua_pushstring(L, asset->name);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

int lasset_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "read", lasset_read },
        { "list", lasset_list },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
