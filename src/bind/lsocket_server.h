/* bind/lsocket_server.h - what sockets that are accepted by TLS share: certificates, which are read again when a
 * file of theirs has changed. */
#ifndef BIND_LSOCKET_SERVER_H
#define BIND_LSOCKET_SERVER_H

#include <lua.h>

/* Adds `server` to the module, which is on top, and the method `accept` to the class of sockets. */
void lsocket_server_add(lua_State *L);

#endif
