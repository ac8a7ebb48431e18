/* bind/lsocket_tls.h - sockets that speak TLS: how it begins, as a client, and what was agreed on. */
#ifndef BIND_LSOCKET_TLS_H
#define BIND_LSOCKET_TLS_H

#include <lua.h>

/* Adds the methods `secure`, `shake` and `tls` to the class. */
void lsocket_tls_add(lua_State *L);

#endif
