/* bind/lcrypto.h - srv.core.crypto: digests, secrets, sealed texts and encodings; what needs no
 * thread of the pool. lua/srv/base/crypto.lua checks what it is given. */
#ifndef BIND_LCRYPTO_H
#define BIND_LCRYPTO_H

#include <lua.h>

/* srv.core.crypto: { sign, verify, hash, hmac, random, uuid, equal, seal, unseal, encode, decode } */
int lcrypto_open(lua_State *L);

#endif
