/* bind/ldns.h - srv.core.dns: names to addresses for Lua. */
#ifndef BIND_LDNS_H
#define BIND_LDNS_H

#include <lua.h>

/* srv.core.dns: resolve(name, [seconds]) -> { "192.0.2.1", ... } | nil, err */
int ldns_open(lua_State *L);

#endif
