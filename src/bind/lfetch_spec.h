/* bind/lfetch_spec.h - from the table that says what is to be sent (lua/types/fetch.d.lua) to a call. */
#ifndef BIND_LFETCH_SPEC_H
#define BIND_LFETCH_SPEC_H

#include <stddef.h>

#include <lua.h>

struct client_call;
struct client_tls;

/* Texts are borrowed from the table at INDEX, which must live as long as the body is needed. *LIMIT: bytes
 * of a whole response. TLS: room for two, the settings of the target and of a proxy. Raises if the head is not
 * what HTTP allows. */
void lfetch_read_spec(lua_State *L, int index, struct client_call *call, struct client_tls *tls,
                      size_t *limit);

/* The table NAME of the one at INDEX (lua/srv/async/tls.lua): how a server is verified. NULL: there is none; or TLS, whose
 * texts are that table's. */
const struct client_tls *lfetch_read_tls(lua_State *L, int index, const char *name,
                                         struct client_tls *tls);

#endif
