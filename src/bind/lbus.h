/* bind/lbus.h - srv.core.bus: messages to all workers (API, section 10); lua/srv/async/bus.lua adds
 * options and the loop. */
#ifndef BIND_LBUS_H
#define BIND_LBUS_H

#include <lua.h>

#include "base/str.h"

/* srv.core.bus: publish(topic, v), subscribe(topic, limit, overflow), dropped(sub), ended(sub),
 * Subscription: the metatable */
int lbus_open(lua_State *L);

/* The topic at INDEX; misuse of WHERE, if it is none. */
struct str lbus_check_topic(lua_State *L, int index, const char *where);

#endif
