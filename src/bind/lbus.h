/* bind/lbus.h - srv.core.bus: messages to all workers (API, section 10); lua/srv/async/bus.lua adds
 * options and the loop. */
#ifndef BIND_LBUS_H
#define BIND_LBUS_H

#include <lua.h>

/* srv.core.bus: publish(topic, v), subscribe(topic, limit, overflow), dropped(sub), ended(sub),
 * Subscription: the metatable */
int lbus_open(lua_State *L);

#endif
