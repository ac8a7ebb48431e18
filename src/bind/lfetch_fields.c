#include "bind/lfetch_fields.h"

#include "bind/lstr.h"
#include "http/message.h"

/* The name and what ALL has of it are on top, and stay: VALUE is one more line. */
static void note_line(lua_State *L, int several, struct str value)
{
    if (lua_isnil(L, several)) {
        lua_newtable(L);
        lua_replace(L, several);
    }
    lua_pushvalue(L, -2);
    lua_rawget(L, several);
    if (lua_isnil(L, -1)) { /* the second one: the first stands in ALL */
        lua_pop(L, 1);
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, 1);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -2);
        lua_rawset(L, several);
    }
    lstr_push(L, value);
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
    lua_pop(L, 1);
}

void lfetch_push_fields(lua_State *L, const struct field *fields, unsigned count)
{
    int all, several;

    lua_createtable(L, 0, (int)count);
    all = lua_gettop(L);
    lua_pushnil(L);
    several = lua_gettop(L);
    for (unsigned i = 0; i < count; i++) {
        lstr_push(L, fields[i].name);
        lua_pushvalue(L, -1);
        lua_rawget(L, all);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lstr_push(L, fields[i].value);
        } else {
            note_line(L, several, fields[i].value);
            lua_pushliteral(L, ", ");
            lstr_push(L, fields[i].value);
            lua_concat(L, 3);
        }
        lua_rawset(L, all);
    }
}
