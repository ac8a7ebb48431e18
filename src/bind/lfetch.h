/* bind/lfetch.h - srv.core.fetch: calls of client/client_call.h for lua/srv/async/fetch.lua. */
#ifndef BIND_LFETCH_H
#define BIND_LFETCH_H

#include <lua.h>

/* srv.core.fetch: call(), configure(total, per_origin, idle_ms), stats() */
int lfetch_open(lua_State *L);

#endif
