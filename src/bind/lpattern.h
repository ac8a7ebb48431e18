/* bind/lpattern.h - path patterns as Lua values, for the router's work at start. */
#ifndef BIND_LPATTERN_H
#define BIND_LPATTERN_H

#include <stdbool.h>

#include <lua.h>

struct route_pattern;

/* The pattern in the userdata at INDEX; raises when there is none. */
struct route_pattern *lpattern_check(lua_State *L, int index);

/* Adds pattern, host_fault and is_method to the table on top. */
void lpattern_register(lua_State *L);

#endif
