#include "bind/lpg_rows.h"

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/ljson.h"
#include "bind/ljson_table.h"
#include "bind/lrows.h"
#include "bind/lstr.h"
#include "data/pg_array.h"
#include "data/pg_rows.h"
#include "data/pg_types.h"
#include "data/rows.h"

#define SCRATCH_METATABLE "srv.pg.Scratch"

/* What decoding needs besides the stack, as userdata: pushing may raise. */
struct scratch {
    struct buf      bytes;
    struct pg_array array;
    struct pg_type  types[];
};

static int scratch_gc(lua_State *L)
{
    struct scratch *scratch = lua_touserdata(L, 1);

    buf_fini(&scratch->bytes);
    pg_array_fini(&scratch->array);
    return 0;
}

static struct scratch *push_scratch(lua_State *L, const struct pg_rows *rows)
{
    unsigned        columns = pg_rows_columns(rows);
    struct scratch *scratch =
        lua_newuserdata(L, sizeof(*scratch) + columns * sizeof(struct pg_type));

    buf_init(&scratch->bytes, ROWS_BYTES_MAX);
    pg_array_init(&scratch->array, STR_NONE, ',');
    for (unsigned i = 0; i < columns; i++)
        scratch->types[i] = pg_rows_type(rows, i);
    if (luaL_newmetatable(L, SCRATCH_METATABLE)) {
        lua_pushcfunction(L, scratch_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return scratch;
}

static void push_scalar(lua_State *L, struct scratch *scratch, enum pg_kind kind, struct str text)
{
    struct value value;

    pg_decode(&value, kind, text, &scratch->bytes);
    lrows_push_cell(L, &value);
}

/* Puts the value on top into the array below it. */
static void add_element(lua_State *L, int *counts, int depth)
{
    if (depth > 0)
        lua_rawseti(L, -2, ++counts[depth]);
}

/* Pushes TEXT as nested arrays; as text if it is none. */
static void push_array(lua_State *L, struct scratch *scratch, struct pg_type type, struct str text)
{
    struct pg_array *array = &scratch->array;
    int              top   = lua_gettop(L);
    int              depth = 0;
    int              counts[PG_ARRAY_DEPTH_MAX + 1];

    luaL_checkstack(L, PG_ARRAY_DEPTH_MAX + LUA_MINSTACK, NULL);
    pg_array_fini(array);
    pg_array_init(array, text, type.separator);
    for (;;) {
        switch (pg_array_next(array)) {
        case PG_ARRAY_OPEN:
            lua_createtable(L, 4, 0);
            ljson_mark_array(L, lua_gettop(L));
            counts[++depth] = 0;
            break;
        case PG_ARRAY_CLOSE: add_element(L, counts, --depth); break;
        case PG_ARRAY_NULL:
            ljson_push_null(L);
            add_element(L, counts, depth);
            break;
        case PG_ARRAY_ELEMENT:
            push_scalar(L, scratch, type.kind, array->element);
            add_element(L, counts, depth);
            break;
        case PG_ARRAY_END: return;
        case PG_ARRAY_BAD:
            lua_settop(L, top);
            lstr_push(L, text);
            return;
        }
    }
}

static void push_cell(lua_State *L, struct scratch *scratch, struct pg_type type, struct str text)
{
    if (type.is_array)
        push_array(L, scratch, type, text);
    else
        push_scalar(L, scratch, type.kind, text);
}

static unsigned push_names(lua_State *L, const struct pg_rows *rows)
{
    unsigned columns = pg_rows_columns(rows);

    luaL_checkstack(L, (int)columns + LUA_MINSTACK, "too many columns");
    for (unsigned i = 0; i < columns; i++)
        lua_pushstring(L, pg_rows_name(rows, i));
    return columns;
}

/* The names lie from FIRST on. */
static void push_row(lua_State *L, const struct pg_rows *rows, struct scratch *scratch,
                     unsigned row, int first, unsigned columns)
{
    struct str text;

    lua_createtable(L, 0, (int)columns);
    for (unsigned i = 0; i < columns; i++) {
        if (!pg_rows_cell(rows, row, i, &text))
            continue;
        lua_pushvalue(L, first + (int)i);
        push_cell(L, scratch, scratch->types[i], text);
        lua_rawset(L, -3);
    }
    ljson_mark_object(L, lua_gettop(L));
}

void lpg_rows_push(lua_State *L, const struct pg_rows *rows)
{
    int             top   = lua_gettop(L);
    unsigned        count = pg_rows_count(rows), columns;
    struct scratch *scratch;

    lua_createtable(L, (int)count, 0);
    ljson_mark_array(L, top + 1);
    if (count == 0)
        return;
    scratch = push_scratch(L, rows);
    columns = push_names(L, rows);
    for (unsigned i = 0; i < count; i++) {
        push_row(L, rows, scratch, i, top + 3, columns);
        lua_rawseti(L, top + 1, (int)i + 1);
    }
    lua_settop(L, top + 1);
}

void lpg_rows_push_first(lua_State *L, const struct pg_rows *rows)
{
    int             top     = lua_gettop(L);
    struct scratch *scratch = push_scratch(L, rows);
    unsigned        columns = push_names(L, rows);

    push_row(L, rows, scratch, 0, top + 2, columns);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

void lpg_rows_push_value(lua_State *L, const struct pg_rows *rows)
{
    struct scratch *scratch = push_scratch(L, rows);
    struct str      text;

    if (pg_rows_columns(rows) > 0 && pg_rows_cell(rows, 0, 0, &text))
        push_cell(L, scratch, scratch->types[0], text);
    else
        lua_pushnil(L);
    lua_remove(L, -2);
}
