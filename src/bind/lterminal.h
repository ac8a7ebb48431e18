/* bind/lterminal.h - srv.core.terminal: what is asked of a terminal by its descriptor. */
#ifndef BIND_LTERMINAL_H
#define BIND_LTERMINAL_H

#include <lua.h>

int lterminal_open(lua_State *L);

#endif
