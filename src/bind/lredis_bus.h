/* bind/lredis_bus.h - the bus of all machines, and Lua values as Redis keeps them (bind/lredis.h). */
#ifndef BIND_LREDIS_BUS_H
#define BIND_LREDIS_BUS_H

#include <lua.h>

/* Adds `bus`, `encode` and `decode` to the module on top. */
void lredis_bus_add(lua_State *L);

#endif
