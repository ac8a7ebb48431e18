#include "bind/ljson_table.h"

#include <limits.h>

/* A mark's metatable holds the address of one of these at MARK_SLOT, and no other table does. */
enum { MARK_SLOT = 1, ORDER_SLOT = 2 };
static const char OBJECT = 'o', ORDERED = 'd', ARRAY = 'a';

/* --- null ------------------------------------------------------------------------------------ */

/* The same as lua-cjson's, so that values may come from there. */
void ljson_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, NULL);
}

bool ljson_is_null(lua_State *L, int index)
{
    return lua_islightuserdata(L, index) && !lua_touserdata(L, index);
}

/* --- marks ----------------------------------------------------------------------------------- */

static void push_metatable(lua_State *L, const char *mark, const char *name)
{
    lua_createtable(L, ORDER_SLOT, 1);
    lua_pushlightuserdata(L, (void *)mark);
    lua_rawseti(L, -2, MARK_SLOT);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
}

/* Made when it is first asked for, then kept in the registry under the mark's address. */
void ljson_push_mark(lua_State *L, enum ljson_mark mark)
{
    bool        is_array = mark == LJSON_MARK_ARRAY;
    const char *address  = is_array ? &ARRAY : &OBJECT;

    lua_pushlightuserdata(L, (void *)address);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    push_metatable(L, address, is_array ? "srv.json.array" : "srv.json.object");
    lua_pushlightuserdata(L, (void *)address);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static int absolute(lua_State *L, int index)
{
    return index < 0 && index > LUA_REGISTRYINDEX ? lua_gettop(L) + index + 1 : index;
}

void ljson_mark_object(lua_State *L, int index)
{
    index = absolute(L, index);
    ljson_push_mark(L, LJSON_MARK_OBJECT);
    lua_setmetatable(L, index);
}

void ljson_mark_array(lua_State *L, int index)
{
    index = absolute(L, index);
    ljson_push_mark(L, LJSON_MARK_ARRAY);
    lua_setmetatable(L, index);
}

void ljson_push_order(lua_State *L, int index)
{
    index = absolute(L, index);
    push_metatable(L, &ORDERED, "srv.json.object");
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, ORDER_SLOT);
}

static enum ljson_mark mark_at(lua_State *L, const void *mark)
{
    if (mark == &OBJECT)
        return LJSON_MARK_OBJECT;
    if (mark == &ARRAY)
        return LJSON_MARK_ARRAY;
    if (mark != &ORDERED)
        return LJSON_MARK_NONE;
    lua_rawgeti(L, -1, ORDER_SLOT);
    return LJSON_MARK_ORDERED;
}

enum ljson_mark ljson_table_mark(lua_State *L)
{
    const void     *address;
    enum ljson_mark mark;

    lua_rawgeti(L, -1, MARK_SLOT);
    address = lua_touserdata(L, -1);
    lua_pop(L, 1);
    mark = mark_at(L, address);
    if (mark != LJSON_MARK_NONE)
        return mark;

    lua_pushliteral(L, "__tojson");
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1))
        mark = LJSON_MARK_CALLS;
    lua_pop(L, 1);
    return mark;
}

struct ljson_shape ljson_table_shape(lua_State *L, int index)
{
    struct ljson_shape shape = { 0, 0, 0 };

    index = absolute(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

        if (key >= 1 && key <= INT_MAX && key == (unsigned)key) {
            shape.count++;
            if (key > shape.last)
                shape.last = (unsigned)key;
        } else {
            shape.others++;
        }
    }
    return shape;
}
