/* bind/lws_client.h - the client's end of a WebSocket: what it asks, and the socket over a channel once it was let in.
 * Who carries the handshake is another's affair: lua/srv/async/websocket.lua over a connection,
 * lua/srv/testing/socket.lua in memory. */
#ifndef BIND_LWS_CLIENT_H
#define BIND_LWS_CLIENT_H

#include <lua.h>

struct channel;

/* Pushes a socket by the rules at RULES and what the ask at ASK has agreed on; it is to be opened at once. May
 * raise. */
void *lws_client_new(lua_State *L, int rules, int ask);
/* The one on top, that was made just now, takes CHANNEL (NULL: there was no memory for one) and ends with the running
 * task. `ws`, or nil and an error; returns their number. */
int lws_client_open(lua_State *L, void *client, struct channel *channel);

/* Adds `ask` to the module on top. */
void lws_client_register(lua_State *L);

#endif
