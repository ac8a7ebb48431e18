/* bind/lrows.h - parameters of a statement from Lua values, results as Lua tables (API, section 9);
 * for all databases. */
#ifndef BIND_LROWS_H
#define BIND_LROWS_H

#include <lua.h>

struct buf;
struct fault;
struct rows;
struct value;
struct values;

/* Adds the value at INDEX: nil and null NULL, whole numbers and 64-bit cdata integers, booleans,
 * strings text, blobs bytes, other tables JSON. NULL, or why it can be none: a constant text, "" for
 * a table in which a __tojson stands (bind/ljson.h: resolve it and come again). */
const char *lrows_add_param(lua_State *L, int index, struct values *params);

/* The statement at FIRST and the values behind it, to the top of the stack. NULL, or why not, as above. */
const char *lrows_read_statement(lua_State *L, int first, struct buf *sql, struct values *params);

/* Makes the string at INDEX bytes and no text: pushes the mark that lrows_add_param() knows. */
void lrows_push_blob(lua_State *L, int index);

/* Pushes one value; NULL is nil. A JSON text is decoded, and stays text if it is none. */
void lrows_push_cell(lua_State *L, const struct value *cell);
/* Pushes an array of rows, each an object by column name; NULL is a missing key. */
void lrows_push(lua_State *L, const struct rows *rows);
/* Pushes the first row (there must be one), or its first column. */
void lrows_push_first(lua_State *L, const struct rows *rows);
void lrows_push_value(lua_State *L, const struct rows *rows);

/* Pushes nil and an error object with data.constraint; a database's timeout is 503. Returns 2. */
int lrows_push_fault(lua_State *L, const struct fault *fault);

#endif
