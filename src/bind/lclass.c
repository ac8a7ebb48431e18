#include "bind/lclass.h"

#include <string.h>

void lclass_push(lua_State *L, const char *name, const luaL_Reg *methods, int upvalues)
{
    luaL_newmetatable(L, name);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_insert(L, -1 - upvalues);
    luaL_setfuncs(L, methods, upvalues);
}

void lclass_add(lua_State *L, const char *name, const luaL_Reg *methods)
{
    lclass_push(L, name, methods, 0);
    lua_pop(L, 1);
}

void *lclass_new(lua_State *L, const char *name, size_t bytes)
{
    void *object = lua_newuserdata(L, bytes);

    memset(object, 0, bytes);
    luaL_getmetatable(L, name);
    lua_setmetatable(L, -2);
    return object;
}

bool lclass_is(lua_State *L, int index, const char *name)
{
    bool is;

    if (!lua_getmetatable(L, index))
        return false;
    luaL_getmetatable(L, name);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}
