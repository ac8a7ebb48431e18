/* bind/lalarm.h - srv.core.alarm: ends a run of specs in which a test waits for what never comes.
 *
 * Counts real time, also while specs hold the loop's clock. */
#ifndef BIND_LALARM_H
#define BIND_LALARM_H

#include <lua.h>

/* srv.core.alarm: see lua/types/alarm.d.lua. */
int lalarm_open(lua_State *L);

#endif
