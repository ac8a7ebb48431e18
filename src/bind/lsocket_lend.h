/* bind/lsocket_lend.h - a socket's stream in the service of a channel. */
#ifndef BIND_LSOCKET_LEND_H
#define BIND_LSOCKET_LEND_H

#include <lua.h>

#include "base/str.h"

struct channel;
struct lsocket;

/* The bytes of the socket at INDEX are a channel's from here on, behind EARLY, which was read already; to Lua it
 * is closed. NULL: it is closed, in use or there is no memory. May raise for lack of it. */
struct channel *lsocket_lend(lua_State *L, int index, struct str early);
/* The VM goes: the channel is no more. */
void lsocket_take_back(struct lsocket *s);

#endif
