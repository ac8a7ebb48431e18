/* bind/lws_upgrade.h - from a request that asks for a WebSocket to a socket with a handler.
 *
 * The route's handler only records the socket, as any handler records its answer: middleware and hooks `send` may
 * still add fields, or answer something else. When the answer goes out it is the switch. */
#ifndef BIND_LWS_UPGRADE_H
#define BIND_LWS_UPGRADE_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct channel;
struct lcall;
struct ws_offer;

/* Sends the head and opens the socket at INDEX of L, which was recorded; its handler begins. False: it cannot be
 * any more, and nothing was sent. Protected. */
bool lws_upgrade(struct lcall *call, lua_State *L, int index);

/* Sends the switch of protocols for OFFER, with the app's fields: the channel, or NULL, and nothing was sent. PROTOCOL may be
 * empty; DEFLATE: messages may be compressed, if the client wants that too. */
struct channel *lws_upgrade_channel(struct lcall *call, struct ws_offer *offer, struct str protocol,
                                    bool deflate);

/* Adds `fault` and `socket` to the module on top. */
void lws_upgrade_register(lua_State *L);

#endif
