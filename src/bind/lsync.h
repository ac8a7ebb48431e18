/* bind/lsync.h - srv.core.sync: channels, events, semaphores and mutexes between the tasks of one VM
 * (API, section 7). lua/srv/async/sync.lua reads durations and adds the loops. */
#ifndef BIND_LSYNC_H
#define BIND_LSYNC_H

#include <lua.h>

/* srv.core.sync: channel(n), event(), semaphore(n), mutex(); Channel, Event, Semaphore, Mutex: their
 * metatables */
int lsync_open(lua_State *L);

#endif
