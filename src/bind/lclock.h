/* bind/lclock.h - srv.core.clock: the time of this loop, held and moved by specs (ev/advance.h).
 *
 * Where no specs run (env->under_test) holding it is an error: a server's clock never stands. */
#ifndef BIND_LCLOCK_H
#define BIND_LCLOCK_H

#include <lua.h>

/* srv.core.clock: see lua/types/clock.d.lua. */
int lclock_open(lua_State *L);

#endif
