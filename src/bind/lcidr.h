/* bind/lcidr.h - srv.core.cidr: sets of networks, for plugins that trust or allow some clients. */
#ifndef BIND_LCIDR_H
#define BIND_LCIDR_H

#include <lua.h>

int lcidr_open(lua_State *L);

#endif
