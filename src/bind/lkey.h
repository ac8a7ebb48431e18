/* bind/lkey.h - srv.core.key: signatures of RSA and ECDSA keys, on the pool's lane for computing. */
#ifndef BIND_LKEY_H
#define BIND_LKEY_H

#include <lua.h>

/* srv.core.key: { sign, verify } */
int lkey_open(lua_State *L);

#endif
