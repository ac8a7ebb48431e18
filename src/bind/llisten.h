/* bind/llisten.h - srv.core.listen: listening sockets for Lua (docs/internals/sockets.md).
 *
 * The socket itself is the process's (net/ports.h); a listener watches it for one task, which takes
 * the connections one by one. */
#ifndef BIND_LLISTEN_H
#define BIND_LLISTEN_H

#include <lua.h>

/* srv.core.listen: open(address) -> core | nil, err; at_load() -> boolean; enter() leave();
 * core: accept close address */
int llisten_open(lua_State *L);

#endif
