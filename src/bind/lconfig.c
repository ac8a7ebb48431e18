#include "bind/lconfig.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

struct reading {
    const char *path;
    lconfig_fn  each;
    void       *arg;
    struct err *err;
    int         result;
};

/* Leaves an array of the table's keys, sorted, so that the first error is the same each time. */
static void push_sorted_keys(lua_State *L, int table, const char *path)
{
    int count = 0;

    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, table);) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s: a setting needs a name, found a key of type %s", path,
                       luaL_typename(L, -1));
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, ++count);
    }
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 0);
}

/* Pushes in place of the table on top what a flag would say: "a=1,b=2". */
static const char *push_named(lua_State *L, const char *path, const char *name)
{
    int table = lua_gettop(L);

    lua_pushliteral(L, "");
    for (lua_pushnil(L); lua_next(L, table);) {
        if (lua_type(L, -2) != LUA_TSTRING || strpbrk(lua_tostring(L, -2), "=, \t\r\n") ||
            !lua_isstring(L, -1))
            luaL_error(L, "%s: %s must give a text or number for each name", path, name);
        lua_pushfstring(L, "%s%s%s=%s", lua_tostring(L, table + 1),
                        lua_objlen(L, table + 1) > 0 ? "," : "", lua_tostring(L, -2),
                        lua_tostring(L, -1));
        lua_replace(L, table + 1);
        lua_pop(L, 1);
    }
    lua_replace(L, table);
    return lua_tostring(L, table);
}

/* A text of the entry ITEM of the list NAME: on top of the stack, where it stays. */
static void check_text(lua_State *L, const char *path, const char *name, int item,
                       const char *forbidden)
{
    if (lua_type(L, -1) != LUA_TSTRING || strpbrk(lua_tostring(L, -1), forbidden))
        luaL_error(L, "%s: %s[%d] must be a text without commas and blanks", path, name, item);
}

/* Pushes in place of the table on top, which is ITEM of a list: "a b", or "x=a y=b". */
static void push_entry(lua_State *L, const char *path, const char *name, int item)
{
    int table = lua_gettop(L);

    lua_pushliteral(L, "");
    for (lua_pushnil(L); lua_next(L, table);) {
        bool is_named = lua_type(L, -2) == LUA_TSTRING;

        check_text(L, path, name, item, "=, \t\r\n");
        lua_pushfstring(
            L, "%s%s%s%s%s", lua_tostring(L, table + 1), lua_objlen(L, table + 1) > 0 ? " " : "",
            is_named ? lua_tostring(L, -2) : "", is_named ? "=" : "", lua_tostring(L, -1));
        lua_replace(L, table + 1);
        lua_pop(L, 1);
    }
    lua_replace(L, table);
}

/* Pushes the list on top of the stack as a flag would say it: "a,b"; of lists of texts "a b,c d".
 * NULL: it is empty. */
static const char *push_joined(lua_State *L, const char *path, const char *name)
{
    int list = lua_gettop(L), count = (int)lua_objlen(L, list);

    if (count == 0) {
        lua_pushnil(L);
        if (lua_next(L, list) == 0)
            return NULL;
        lua_pop(L, 2);
        return push_named(L, path, name);
    }
    lua_pushliteral(L, "");
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, list, i);
        if (lua_istable(L, -1))
            push_entry(L, path, name, i);
        else
            check_text(L, path, name, i, ", \t\r\n");
        lua_pushstring(L, i < count ? "," : "");
        lua_concat(L, 3);
    }
    lua_replace(L, list);
    return lua_tostring(L, list);
}

/* The value on top of the stack, where its text stays. */
static const char *value_as_text(lua_State *L, const char *path, const char *name)
{
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN: return lua_toboolean(L, -1) ? "true" : "false";
    case LUA_TNUMBER:
    case LUA_TSTRING: return lua_tostring(L, -1);
    case LUA_TTABLE: return push_joined(L, path, name);
    default:
        luaL_error(L, "%s: %s must be a text, a number or a boolean, not a %s", path, name,
                   luaL_typename(L, -1));
        return NULL;
    }
}

static void hand_over(lua_State *L, int table, struct reading *reading)
{
    int keys;

    push_sorted_keys(L, table, reading->path);
    keys = lua_gettop(L);
    for (int i = 1; reading->result == 0; i++) {
        lua_rawgeti(L, keys, i);
        if (lua_isnil(L, -1))
            return;
        lua_pushvalue(L, -1);
        lua_rawget(L, table);
        reading->result =
            reading->each(lua_tostring(L, -2), value_as_text(L, reading->path, lua_tostring(L, -2)),
                          reading->arg, reading->err);
        lua_pop(L, 2);
    }
}

/* Called by require(), which the file has called. */
static int no_srv(lua_State *L)
{
    luaL_where(L, 2);
    lua_pushliteral(L, "config.lua runs before srv is there, and cannot require it: "
                       "os.getenv(\"NAME\") reads a variable");
    lua_concat(L, 2);
    return lua_error(L);
}

/* package.preload.srv */
static void refuse_srv(lua_State *L)
{
    lua_getfield(L, LUA_GLOBALSINDEX, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, no_srv);
    lua_setfield(L, -2, "srv");
    lua_pop(L, 2);
}

static int run_file(lua_State *L)
{
    struct reading *reading = lua_touserdata(L, 1);

    luaL_openlibs(L);
    refuse_srv(L);
    if (luaL_loadfile(L, reading->path) != 0)
        return lua_error(L);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s must return a table of settings, not %s", reading->path,
                          luaL_typename(L, -1));
    hand_over(L, lua_gettop(L), reading);
    return 0;
}

int lconfig_read(const char *path, lconfig_fn each, void *arg, struct err *err)
{
    struct reading reading = { path, each, arg, err, 0 };
    lua_State     *L;

    if (access(path, R_OK) != 0)
        return err_set_errno(err, "%s", path);
    L = luaL_newstate();
    if (!L)
        return err_set(err, ERR_MEMORY, "%s: no memory for a Lua state", path);
    if (lua_cpcall(L, run_file, &reading) != 0)
        reading.result = err_set(err, ERR_INVALID, "%s", lua_tostring(L, -1));
    lua_close(L);
    return reading.result;
}
