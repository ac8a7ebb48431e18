/* bind/lredis_client.h - clients of srv.core.redis (bind/lredis.h). */
#ifndef BIND_LREDIS_CLIENT_H
#define BIND_LREDIS_CLIENT_H

#include <lua.h>

#include <lauxlib.h>

struct redis_client;

/* The client at INDEX. Raises, blaming the caller's line, when it is closed. */
struct redis_client *lredis_check_client(lua_State *L, int index);

/* Adds `open` to the module on top; METHODS are those of clients besides place() and close(). */
void lredis_client_add(lua_State *L, const luaL_Reg *methods);

#endif
