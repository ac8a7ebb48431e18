/* bind/lcrypto.h - srv.core.crypto: keyed digests for signed cookies. */
#ifndef BIND_LCRYPTO_H
#define BIND_LCRYPTO_H

#include <lua.h>

/* srv.core.crypto: { sign, verify, random } */
int lcrypto_open(lua_State *L);

#endif
