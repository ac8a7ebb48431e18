/* bind/lcertificate.h - srv.core.certificate: certificates for development, for `srv cert`. */
#ifndef BIND_LCERTIFICATE_H
#define BIND_LCERTIFICATE_H

#include <lua.h>

int lcertificate_open(lua_State *L);

#endif
