/* bind/lws_relay.h - a WebSocket that is passed on: another server has switched already, and when our answer goes out the
 * client's bytes go to it and its to the client (http/relay.h). */
#ifndef BIND_LWS_RELAY_H
#define BIND_LWS_RELAY_H

#include <stdbool.h>

#include <lua.h>

struct lcall;

/* Whether a relay stands at INDEX. */
bool lws_relay_is(lua_State *L, int index);
/* As lws_upgrade(), for the relay at INDEX. */
bool lws_relay_upgrade(struct lcall *call, lua_State *L, int index);

/* Adds `relay` to the module on top. */
void lws_relay_register(lua_State *L);

#endif
