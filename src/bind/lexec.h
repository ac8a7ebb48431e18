/* bind/lexec.h - srv.core.exec: other programs as processes with three pipes.
 *
 * A process belongs to the task that started it, and ends with that: SIGTERM, then SIGKILL, to all of
 * its group. lua/srv/async/exec.lua makes of it what the API says. */
#ifndef BIND_LEXEC_H
#define BIND_LEXEC_H

#include <lua.h>

/* srv.core.exec: { start, read, write, close, wait, kill, pid, is_busy, environ } */
int lexec_open(lua_State *L);

#endif
