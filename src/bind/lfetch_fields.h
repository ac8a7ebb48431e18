/* bind/lfetch_fields.h - header and trailer fields of a response as Lua tables. */
#ifndef BIND_LFETCH_FIELDS_H
#define BIND_LFETCH_FIELDS_H

#include <lua.h>

struct field;

/* Pushes two values: { name = value }, in which lines of one name are joined by ", "; and for the names
 * that came more than once { name = { value, ... } }, or nil. */
void lfetch_push_fields(lua_State *L, const struct field *fields, unsigned count);

#endif
