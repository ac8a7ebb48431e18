/* bind/lws_client.h - the client's end of a WebSocket: what it asks, and the socket over a channel once it was let in.
 * Who carries the handshake is another's affair: lua/srv/async/websocket.lua over a connection,
 * lua/srv/testing/socket.lua in memory. */
#ifndef BIND_LWS_CLIENT_H
#define BIND_LWS_CLIENT_H

#include <lua.h>

struct channel;

/* Pushes the socket over CHANNEL by the rules at RULES and what the ask at ASK has agreed on. It ends with the
 * running task. CHANNEL is taken, or cut before this raises. */
int lws_client_push(lua_State *L, int rules, int ask, struct channel *channel);

/* Adds `ask` to the module on top. */
void lws_client_register(lua_State *L);

#endif
