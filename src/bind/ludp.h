/* bind/ludp.h - srv.core.udp: datagrams for Lua. */
#ifndef BIND_LUDP_H
#define BIND_LUDP_H

#include <lua.h>

/* srv.core.udp: open(host, port, peer_host | nil, peer_port) -> core | nil, err
 * core: send receive close address */
int ludp_open(lua_State *L);

#endif
