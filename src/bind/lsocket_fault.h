/* bind/lsocket_fault.h - what Lua is told of a socket on which nothing can be done any more. */
#ifndef BIND_LSOCKET_FAULT_H
#define BIND_LSOCKET_FAULT_H

#include <lua.h>

struct lsocket;

/* nil, err: tls, closed. Returns 2. */
int lsocket_push_closed(lua_State *L, const struct lsocket *s);

#endif
