/* bind/linterrupt.h - srv.core.interrupt: Ctrl-C as an event, for commands that have something to finish. */
#ifndef BIND_LINTERRUPT_H
#define BIND_LINTERRUPT_H

#include <lua.h>

int linterrupt_open(lua_State *L);

#endif
