/* bind/lhttp_test.h - requests without a socket: an exchange's wire in memory, for srv.test.
 *
 * All above the wire is the code that serves: router, tasks, limits, streams. What the wire alone
 * decides (framing, Date, keep-alive) is not there. */
#ifndef BIND_LHTTP_TEST_H
#define BIND_LHTTP_TEST_H

#include <lua.h>

/* Adds `test_request`, `test_open` and `test_listen` to the module on top. */
void lhttp_test_register(lua_State *L);

#endif
