/* bind/lfield.h - fields of Lua tables by name: of tables of options that the Lua side has made, and of
 * tables of numbers that it gets. */
#ifndef BIND_LFIELD_H
#define BIND_LFIELD_H

#include <stdbool.h>

#include "bind/lstr.h"

/* STR_NONE where there is none. Lives as long as the table has it. */
static inline struct str lfield_str(lua_State *L, int table, const char *name)
{
    struct str text;

    lua_getfield(L, table, name);
    text = lstr_at(L, -1);
    lua_pop(L, 1);
    return text;
}

static inline bool lfield_bool(lua_State *L, int table, const char *name)
{
    bool is;

    lua_getfield(L, table, name);
    is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

/* 0 where there is none. */
static inline lua_Number lfield_number(lua_State *L, int table, const char *name)
{
    lua_Number number;

    lua_getfield(L, table, name);
    number = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return number;
}

/* Of the table on top. */
static inline void lfield_set_number(lua_State *L, const char *name, lua_Number number)
{
    lua_pushnumber(L, number);
    lua_setfield(L, -2, name);
}

static inline void lfield_set_bool(lua_State *L, const char *name, bool is)
{
    lua_pushboolean(L, is);
    lua_setfield(L, -2, name);
}

#endif
