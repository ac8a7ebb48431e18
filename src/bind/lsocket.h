/* bind/lsocket.h - srv.core.socket: connected sockets for Lua (docs/internals/sockets.md).
 *
 * A socket is a userdata: the collector closes it. In a wait it is its task's: when that is
 * cancelled the socket is closed, for nobody knows what of a message has come or gone. */
#ifndef BIND_LSOCKET_H
#define BIND_LSOCKET_H

#include <stdbool.h>

#include <lua.h>

#include "net/addr.h"

struct dial;

/* Pushes a socket over FD, which is connected, and the socket's from here on. False: nothing was
 * pushed, FD is closed, errno is set. Raises on lack of memory; FD is still the caller's then. */
bool lsocket_push(lua_State *L, int fd, const struct addr *peer);

/* nil, err of a dial that failed: refused, timeout, dns, unavailable */
int lsocket_push_dial_fault(lua_State *L, const struct dial *dial);

/* srv.core.socket: new() -> core; core: connect read write shutdown close peer address is_open */
int lsocket_open(lua_State *L);

#endif
