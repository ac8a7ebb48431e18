/* bind/lgroup.h - srv.core.group: children of one task that are waited for together, from which
 * lua/srv/async/task.lua makes srv.all, map, race and timeout. */
#ifndef BIND_LGROUP_H
#define BIND_LGROUP_H

#include <lua.h>

#define LGROUP_METATABLE "srv.TaskGroup"

/* srv.core.group: new, start, room, gather, next, cancel */
int lgroup_open(lua_State *L);

#endif
