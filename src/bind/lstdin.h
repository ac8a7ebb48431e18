/* bind/lstdin.h - srv.core.stdin: what is typed, or comes by a pipe, read while other tasks go on. */
#ifndef BIND_LSTDIN_H
#define BIND_LSTDIN_H

#include <lua.h>

int lstdin_open(lua_State *L);

#endif
