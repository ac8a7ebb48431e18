/* bind/lgroup.h - srv.core.group: children of one task that are waited for together, from which
 * lua/srv/async/task.lua makes srv.all, map, race and timeout. */
#ifndef BIND_LGROUP_H
#define BIND_LGROUP_H

#include <stdbool.h>

#include <lua.h>

struct task;

#define LGROUP_METATABLE "srv.TaskGroup"

/* TASK is a child of a group: its parent goes on when it has ended, or cancels it. */
bool lgroup_is_child(const struct task *task);

/* srv.core.group: new, start, room, gather, next, cancel */
int lgroup_open(lua_State *L);

#endif
