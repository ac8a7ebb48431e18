/* bind/lload.h - srv.core.load: the load generator and its histograms for commands written in Lua. */
#ifndef BIND_LLOAD_H
#define BIND_LLOAD_H

#include <lua.h>

int lload_open(lua_State *L);

#endif
