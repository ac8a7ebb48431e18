/* bind/lredis_sub.h - subscriptions of srv.core.redis (bind/lredis.h). */
#ifndef BIND_LREDIS_SUB_H
#define BIND_LREDIS_SUB_H

#include <lua.h>

/* Adds `subscribe` to the module on top. */
void lredis_sub_add(lua_State *L);

#endif
