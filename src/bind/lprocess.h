/* bind/lprocess.h - srv.core.process: what the system tells of processes that a command has started. */
#ifndef BIND_LPROCESS_H
#define BIND_LPROCESS_H

#include <lua.h>

int lprocess_open(lua_State *L);

#endif
