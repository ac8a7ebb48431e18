/* bind/lpg_rows.h - results of PostgreSQL as Lua tables (API, section 9). */
#ifndef BIND_LPG_ROWS_H
#define BIND_LPG_ROWS_H

#include <lua.h>

struct pg_rows;

/* Pushes an array of rows, each an object by column name; NULL is a missing key. */
void lpg_rows_push(lua_State *L, const struct pg_rows *rows);
/* Pushes the first row (there must be one), or its first column. */
void lpg_rows_push_first(lua_State *L, const struct pg_rows *rows);
void lpg_rows_push_value(lua_State *L, const struct pg_rows *rows);

#endif
