#include "bind/lrows.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ljson.h"
#include "bind/lstr.h"
#include "data/fault.h"
#include "data/rows.h"
#include "data/values.h"

#define BLOB_METATABLE "srv.Blob"

enum {
    TYPE_CDATA     = 10, /* LuaJIT's LUA_TCDATA, which no header names */
    TIMEOUT_STATUS = 503,
};

/* --- parameters ------------------------------------------------------------------------------ */

static const char *add_number(double number, struct values *params)
{
    if (isnan(number))
        return "NaN is no value for a database";
    if (number == floor(number) && fabs(number) < 9223372036854775808.0)
        values_add(params, value_int((int64_t)number));
    else
        values_add(params, value_real(number));
    return NULL;
}

/* "42LL" and "42ULL" is how LuaJIT writes its 64-bit integers. */
static const char *add_cdata(lua_State *L, int index, struct values *params)
{
    const char        *text = luaL_callmeta(L, index, "__tostring") ? lua_tostring(L, -1) : NULL;
    char              *end;
    unsigned long long digits;

    if (!text)
        return "of cdata only 64-bit integers are values for a database";
    digits = strtoull(text + (*text == '-'), &end, 10);
    if (end == text || (strcmp(end, "LL") != 0 && strcmp(end, "ULL") != 0)) {
        lua_pop(L, 1);
        return "of cdata only 64-bit integers are values for a database";
    }
    if (*text == '-')
        values_add(params, value_int((int64_t)(0 - digits)));
    else if (digits <= INT64_MAX)
        values_add(params, value_int((int64_t)digits));
    else
        values_add(params, value_bytes(VALUE_TEXT, str_make(text, (size_t)(end - text))));
    lua_pop(L, 1);
    return NULL;
}

static void add_string(lua_State *L, int index, enum value_kind kind, struct values *params)
{
    values_add(params, value_bytes(kind, lstr_at(L, index)));
}

static const char *add_table(lua_State *L, int index, struct values *params)
{
    struct buf      json;
    enum ljson_code code;

    if (lclass_is(L, index, BLOB_METATABLE)) {
        lua_rawgeti(L, index, 1);
        add_string(L, -1, VALUE_BLOB, params);
        lua_pop(L, 1);
        return NULL;
    }
    buf_init(&json, params->packed.bytes_max);
    code = ljson_encode(L, index, &json, 0);
    if (code == LJSON_OK)
        values_add(params, value_bytes(VALUE_JSON, buf_str(&json)));
    else
        params->packed.failed |= code == LJSON_TOO_LARGE;
    buf_fini(&json);
    switch (code) {
    case LJSON_MISUSE: return lua_tostring(L, -1); /* its path is in it; stays on the stack */
    case LJSON_CALLS: return "";
    default: return NULL;
    }
}

static const char *add_value(lua_State *L, int index, struct values *params)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL: values_add(params, value_null()); return NULL;
    case LUA_TBOOLEAN: values_add(params, value_bool(lua_toboolean(L, index))); return NULL;
    case LUA_TNUMBER: return add_number(lua_tonumber(L, index), params);
    case LUA_TSTRING: add_string(L, index, VALUE_TEXT, params); return NULL;
    case LUA_TTABLE: return add_table(L, index, params);
    case TYPE_CDATA: return add_cdata(L, index, params);
    default:
        if (!ljson_is_null(L, index))
            return "a function, userdata or thread is no value for a database";
        values_add(params, value_null());
        return NULL;
    }
}

const char *lrows_add_param(lua_State *L, int index, struct values *params)
{
    const char *wrong = add_value(L, index, params);

    if (!wrong && params->packed.failed)
        return "the values are too large for one statement";
    return wrong;
}

const char *lrows_read_statement(lua_State *L, int first, struct buf *sql, struct values *params)
{
    const char *wrong = NULL;
    int         top   = lua_gettop(L);

    if (lua_type(L, first) != LUA_TSTRING)
        return "the statement must be a string";
    buf_add_str(sql, lstr_at(L, first));
    for (int i = first + 1; i <= top && !wrong; i++)
        wrong = lrows_add_param(L, i, params);
    return !wrong && sql->failed ? "the statement is too large" : wrong;
}

void lrows_push_blob(lua_State *L, int index)
{
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, 1);
    luaL_newmetatable(L, BLOB_METATABLE);
    lua_setmetatable(L, -2);
}

/* --- results --------------------------------------------------------------------------------- */

static void push_json(lua_State *L, struct str text)
{
    int count = ljson_decode(L, text, NULL);

    if (count == 1)
        return;
    lua_pop(L, count);
    lstr_push(L, text);
}

void lrows_push_cell(lua_State *L, const struct value *cell)
{
    switch (cell->kind) {
    case VALUE_NULL: lua_pushnil(L); break;
    case VALUE_BOOL: lua_pushboolean(L, cell->integer != 0); break;
    case VALUE_INT: lua_pushnumber(L, (lua_Number)cell->integer); break;
    case VALUE_REAL: lua_pushnumber(L, cell->real); break;
    case VALUE_TEXT:
    case VALUE_BLOB: lstr_push(L, cell->bytes); break;
    case VALUE_JSON: push_json(L, cell->bytes); break;
    }
}

/* Pushes the names of the columns; returns their number. */
static int push_names(lua_State *L, const struct rows *rows)
{
    struct str   rest = values_all(&rows->names);
    struct value name;

    luaL_checkstack(L, (int)rows->names.count + LUA_MINSTACK, "too many columns");
    while (values_next(&rest, &name))
        lstr_push(L, name.bytes);
    return (int)rows->names.count;
}

/* Pushes a row of what *REST holds; the names lie at FIRST. */
static void push_row(lua_State *L, int first, int columns, struct str *rest)
{
    struct value cell;

    lua_createtable(L, 0, columns);
    for (int i = 0; i < columns && values_next(rest, &cell); i++) {
        if (cell.kind == VALUE_NULL)
            continue;
        lua_pushvalue(L, first + i);
        lrows_push_cell(L, &cell);
        lua_rawset(L, -3);
    }
    ljson_mark_object(L, lua_gettop(L));
}

void lrows_push(lua_State *L, const struct rows *rows)
{
    struct str rest = values_all(&rows->cells);
    int        top  = lua_gettop(L);
    int        columns;

    lua_createtable(L, (int)rows->row_count, 0);
    ljson_mark_array(L, top + 1);
    columns = push_names(L, rows);
    for (unsigned i = 1; i <= rows->row_count; i++) {
        push_row(L, top + 2, columns, &rest);
        lua_rawseti(L, top + 1, (int)i);
    }
    lua_settop(L, top + 1);
}

void lrows_push_first(lua_State *L, const struct rows *rows)
{
    struct str rest    = values_all(&rows->cells);
    int        first   = lua_gettop(L) + 1;
    int        columns = push_names(L, rows);

    push_row(L, first, columns, &rest);
    lua_replace(L, first);
    lua_settop(L, first);
}

void lrows_push_value(lua_State *L, const struct rows *rows)
{
    struct str   rest = values_all(&rows->cells);
    struct value cell;

    if (values_next(&rest, &cell))
        lrows_push_cell(L, &cell);
    else
        lua_pushnil(L);
}

/* --- faults ---------------------------------------------------------------------------------- */

int lrows_push_fault(lua_State *L, const struct fault *fault)
{
    const char *told = fault_told(fault->code);

    lerror_nil(L, fault->code, "%s", told ? told : fault->text);
    if (told) { /* what names tables and statements is for the log */
        lua_pushstring(L, fault->text);
        lua_setfield(L, -2, "cause");
    }
    if (strcmp(fault->code, "timeout") == 0) {
        lua_pushinteger(L, TIMEOUT_STATUS);
        lua_setfield(L, -2, "status");
    }
    if (fault->constraint[0]) {
        lua_createtable(L, 0, 1);
        lua_pushstring(L, fault->constraint);
        lua_setfield(L, -2, "constraint");
        lua_setfield(L, -2, "data");
    }
    return 2;
}
