/* A module with a static variable: counter.next() tells who shares it, counter.version which code it
 * is. counter.inner is a second module in the same file. */
#include <lauxlib.h>

__attribute__((visibility("default"))) int luaopen_counter(lua_State *L);
__attribute__((visibility("default"))) int luaopen_counter_inner(lua_State *L);

static int calls;

static int next(lua_State *L)
{
    lua_pushinteger(L, ++calls);
    return 1;
}

int luaopen_counter(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, next);
    lua_setfield(L, -2, "next");
    lua_pushinteger(L, VERSION);
    lua_setfield(L, -2, "version");
    return 1;
}

int luaopen_counter_inner(lua_State *L)
{
    lua_pushliteral(L, "inner");
    return 1;
}
