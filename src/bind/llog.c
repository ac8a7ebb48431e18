#include "bind/llog.h"

#include <lauxlib.h>

#include "base/log.h"
#include "bind/env.h"
#include "bind/llog_value.h"

#define LOGGER_METATABLE "srv.Logger"

enum { BOUND = 1 }; /* where a logger keeps its own fields */

/* Its address is the registry's key of the function that srv.test listens with. */
static const char TAP_KEY = 0;

/* --- fields ---------------------------------------------------------------------------------------- */

static void add_field(struct log_line *line, lua_State *L, struct str key, int index)
{
    struct buf json;

    if (llog_value_is_secret(key)) {
        log_line_text(line, key, STR("[masked]"));
        return;
    }
    if (lua_type(L, index) == LUA_TSTRING) {
        size_t      len;
        const char *text = lua_tolstring(L, index, &len);

        log_line_text(line, key, str_make(text, len));
        return;
    }
    buf_init(&json, LOG_PAYLOAD_MAX);
    llog_value(&json, L, index);
    if (json.failed)
        log_line_text(line, key, STR("(too large)"));
    else
        log_line_json(line, key, buf_str(&json));
    buf_fini(&json);
}

/* The fields of the table at INDEX, but for those that the table at HIDING (0: none) has as well. */
static void add_fields(struct log_line *line, lua_State *L, int index, int hiding)
{
    int left_out, count, first;

    if (!index || !lua_istable(L, index))
        return;
    count = llog_value_keys(L, index, &left_out);
    first = lua_gettop(L) - count + 1;
    for (int i = 0; i < count; i++) {
        size_t      len;
        const char *key    = lua_tolstring(L, first + i, &len);
        bool        hidden = false;

        if (hiding && lua_istable(L, hiding)) {
            lua_pushvalue(L, first + i);
            lua_rawget(L, hiding);
            hidden = !lua_isnil(L, -1);
            lua_pop(L, 1);
        }
        if (hidden)
            continue;
        lua_pushvalue(L, first + i);
        lua_rawget(L, index);
        add_field(line, L, str_make(key, len), lua_gettop(L));
        lua_pop(L, 1);
    }
    lua_pop(L, count);
}

/* Whether the table at INDEX (0: none) has its own idea of NAME. */
static bool has_field(lua_State *L, int index, struct str name)
{
    bool has;

    if (!index || !lua_istable(L, index))
        return false;
    llog_value_field(L, index, name);
    has = !lua_isnil(L, -1);
    lua_pop(L, 1);
    return has;
}

static void add_request_id(struct log_line *line, lua_State *L, int bound, int fields)
{
    const struct env *env = env_of(L);
    struct str        id  = env->request_id ? env->request_id(L) : STR_NONE;

    if (id.len && !has_field(L, bound, STR("reqId")) && !has_field(L, fields, STR("reqId")))
        log_line_text(line, STR("reqId"), id);
}

/* Nothing in here raises, so that the line's memory is always given back. */
static void write_line(lua_State *L, enum log_level level, struct str message, int bound,
                       int fields)
{
    struct log_line line;

    log_line_begin(&line, level, message);
    add_request_id(&line, L, bound, fields);
    add_fields(&line, L, bound, fields);
    add_fields(&line, L, fields, 0);
    log_line_end(&line);
}

/* --- the functions ----------------------------------------------------------------------------------- */

/* Calls what srv.core.log.tap() was given, with (level, message, fields). */
static void call_tap(lua_State *L, enum log_level level, int message, int fields)
{
    lua_pushlightuserdata(L, (void *)&TAP_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushstring(L, log_level_name(level));
    lua_pushvalue(L, message);
    lua_pushvalue(L, fields);
    lua_call(L, 3, 0);
}

/* Copies the fields of the table at FROM into that at TO. */
static void copy_fields(lua_State *L, int from, int to)
{
    if (!lua_istable(L, from))
        return;
    lua_pushnil(L);
    while (lua_next(L, from)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, to);
    }
}

/* An error object as the message: its text at index 1, and among the fields at index 2 itself. */
static void spread_error(lua_State *L)
{
    lua_settop(L, 2);
    lua_newtable(L);
    copy_fields(L, 2, 3);
    lua_pushvalue(L, 1);
    lua_setfield(L, 3, "err");
    lua_replace(L, 2);
    lua_getfield(L, 1, "message");
    lua_replace(L, 1);
}

/* log.LEVEL(message, [fields]); also log:LEVEL(...). Upvalues: the level, the logger. */
static int write_at_level(lua_State *L)
{
    enum log_level level = (enum log_level)lua_tointeger(L, lua_upvalueindex(1));
    size_t         len;
    const char    *message;

    if (lua_rawequal(L, 1, lua_upvalueindex(2)))
        lua_remove(L, 1);
    if (lua_istable(L, 1))
        spread_error(L);
    message = luaL_checklstring(L, 1, &len);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    if (log_wants(level)) {
        lua_rawgeti(L, lua_upvalueindex(2), BOUND);
        write_line(L, level, str_make(message, len), 3, 2);
    }
    call_tap(L, level, 1, 2);
    return 0;
}

static void push_logger(lua_State *L);

/* log.with(fields) -> logger whose lines have these fields too. Upvalues: none, the logger. */
static int with(lua_State *L)
{
    if (lua_rawequal(L, 1, lua_upvalueindex(2)))
        lua_remove(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_rawgeti(L, lua_upvalueindex(2), BOUND);
    lua_newtable(L);
    copy_fields(L, 2, 3);
    copy_fields(L, 1, 3);
    push_logger(L);
    lua_insert(L, 3);
    lua_rawseti(L, 3, BOUND);
    return 1;
}

/* logger[name]: a logger's functions are made when first asked for, since most are asked for one.
 * Nil for an unknown name. */
static int make_method(lua_State *L)
{
    size_t         len;
    const char    *name = luaL_checklstring(L, 2, &len);
    enum log_level level;

    if (log_level_of_name(str_make(name, len), &level) && level != LOG_OFF) {
        lua_pushinteger(L, level);
        lua_pushvalue(L, 1);
        lua_pushcclosure(L, write_at_level, 2);
    } else if (str_is(str_make(name, len), STR("with"))) {
        lua_pushnil(L);
        lua_pushvalue(L, 1);
        lua_pushcclosure(L, with, 2);
    } else {
        return 0;
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

static void push_logger(lua_State *L)
{
    lua_createtable(L, 1, 2);
    if (luaL_newmetatable(L, LOGGER_METATABLE)) {
        lua_pushcfunction(L, make_method);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
}

/* wants(level) -> boolean: whether a line of this level would be written */
static int wants(lua_State *L)
{
    size_t         len;
    const char    *name = luaL_checklstring(L, 1, &len);
    enum log_level level;

    luaL_argcheck(L, log_level_of_name(str_make(name, len), &level), 1, "no level of the log");
    lua_pushboolean(L, log_wants(level));
    return 1;
}

/* tap([fn]): fn(level, message, fields) hears every line of this VM, whatever the log's level; nil
 * ends that. For tests. */
static int tap(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_isnil(L, 1))
        luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushlightuserdata(L, (void *)&TAP_KEY);
    lua_insert(L, 1);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

/* print(...): the values by tostring, tabs between them, as a line of level info */
static int print(lua_State *L)
{
    int         count = lua_gettop(L);
    luaL_Buffer text;
    size_t      len;
    const char *message;

    luaL_buffinit(L, &text);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addchar(&text, '\t');
        lua_getglobal(L, "tostring");
        lua_pushvalue(L, i);
        lua_call(L, 1, 1);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "'tostring' must return a string to 'print'");
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    lua_pushnil(L);
    message = lua_tolstring(L, -2, &len);
    if (log_wants(LOG_INFO))
        write_line(L, LOG_INFO, str_make(message, len), 0, 0);
    call_tap(L, LOG_INFO, count + 1, count + 2);
    return 0;
}

void llog_take_print(lua_State *L)
{
    lua_pushcfunction(L, print);
    lua_setglobal(L, "print");
}

int llog_open(lua_State *L)
{
    llog_value_prepare(L);
    push_logger(L);
    lua_pushcfunction(L, wants);
    lua_setfield(L, -2, "wants");
    lua_pushcfunction(L, tap);
    lua_setfield(L, -2, "tap");
    lua_pushcfunction(L, print);
    lua_setfield(L, -2, "print");
    return 1;
}
