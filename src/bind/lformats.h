/* bind/lformats.h - srv.core.formats: what a text is that claims to be an address, a date or an identifier,
 * each `(text) -> boolean` by base/format.h. */
#ifndef BIND_LFORMATS_H
#define BIND_LFORMATS_H

#include <lua.h>

int lformats_open(lua_State *L);

#endif
