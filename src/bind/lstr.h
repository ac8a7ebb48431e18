/* bind/lstr.h - strings across the border: struct str of what stands on a Lua stack, and back. What is
 * read is borrowed: it lives as long as its string stands there, or in a table that does. */
#ifndef BIND_LSTR_H
#define BIND_LSTR_H

#include <lauxlib.h>

#include "base/str.h"

/* A string, or a number, which becomes one where it stands; else an error of the caller's. */
static inline struct str lstr_check(lua_State *L, int index)
{
    size_t      len;
    const char *at = luaL_checklstring(L, index, &len);

    return str_make(at, len);
}

/* The same, or an empty text where there is nil or nothing. */
static inline struct str lstr_opt(lua_State *L, int index)
{
    size_t      len;
    const char *at = luaL_optlstring(L, index, "", &len);

    return str_make(at, len);
}

/* The same of what was looked at already; STR_NONE if it is no string and no number. */
static inline struct str lstr_at(lua_State *L, int index)
{
    size_t      len;
    const char *at = lua_tolstring(L, index, &len);

    return at ? str_make(at, len) : STR_NONE;
}

/* Returns 1: the number of results. */
static inline int lstr_push(lua_State *L, struct str text)
{
    lua_pushlstring(L, text.at ? text.at : "", text.len);
    return 1;
}

/* The same, with nil for STR_NONE. */
static inline int lstr_push_or_nil(lua_State *L, struct str text)
{
    if (text.at)
        return lstr_push(L, text);
    lua_pushnil(L);
    return 1;
}

#endif
