/* bind/lrequest.h - what Lua may ask of a request's head. */
#ifndef BIND_LREQUEST_H
#define BIND_LREQUEST_H

#include <lua.h>

struct lcall;

/* Pushes the call's parameters as the runner takes them; returns their number. */
int lrequest_push_params(lua_State *L, const struct lcall *call);

/* Adds `method`, `path`, `header`, `query` and their like to the module on top. */
void lrequest_register(lua_State *L);

#endif
