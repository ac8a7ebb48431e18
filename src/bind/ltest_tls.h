/* bind/ltest_tls.h - what a request of srv.test is said to have come over. Private to srv.test's modules. */
#ifndef BIND_LTEST_TLS_H
#define BIND_LTEST_TLS_H

#include <lua.h>

struct arena;
struct tls_info;

/* The field `tls` of the table REQUEST: { version, cipher, sni, resumed, client }, each of which may be
 * missing; in ARENA. NULL: there is none, and it came over plain HTTP. */
const struct tls_info *ltest_tls_read(lua_State *L, int request, struct arena *arena);

#endif
