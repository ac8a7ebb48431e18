/* bind/ltls.h - what Lua sees of a TLS connection: `req.tls`, `sock.tls`. */
#ifndef BIND_LTLS_H
#define BIND_LTLS_H

#include <lua.h>

struct tls_info;

/* Pushes { version, cipher, resumed, sni, [PEER] = { subject, serial, fingerprint } }. `sni` is nil where no
 * name was asked for, [PEER] where the peer has shown no certificate. */
void ltls_push_info(lua_State *L, const struct tls_info *info, const char *peer);

#endif
