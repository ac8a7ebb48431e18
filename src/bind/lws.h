/* bind/lws.h - srv.core.ws: WebSockets for lua/srv/web/websocket.lua and lua/srv/async/websocket.lua. */
#ifndef BIND_LWS_H
#define BIND_LWS_H

#include <lua.h>

/* srv.core.ws */
int lws_open(lua_State *L);

#endif
