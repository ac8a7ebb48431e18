/* What a module for Lua 5.4 looks like to the loader. */
#include <lua.h>

extern void *lua_newuserdatauv(lua_State *L, size_t size, int values);

__attribute__((visibility("default"))) int luaopen_newer_lua(lua_State *L);

int luaopen_newer_lua(lua_State *L)
{
    lua_newuserdatauv(L, 8, 1);
    return 1;
}
