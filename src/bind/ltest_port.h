/* bind/ltest_port.h - a real port on loopback that serves the app under test, for t:listen(). */
#ifndef BIND_LTEST_PORT_H
#define BIND_LTEST_PORT_H

#include <lua.h>

/* Adds test_listen(site) -> port | nil, err to the module on top of the stack; port: url() close(). */
void ltest_port_register(lua_State *L);

#endif
