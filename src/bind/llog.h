/* bind/llog.h - srv.core.log: srv.log's functions, and print.
 *
 * A line is put together here and handed to base/log: no Lua code of the app's runs, no metamethod
 * is called, nothing waits. Values are bounded in depth, width and size; passwords and the like are
 * masked at any depth. */
#ifndef BIND_LLOG_H
#define BIND_LLOG_H

#include <lua.h>

/* srv.core.log: { trace, debug, info, warn, error, fatal, with, wants, tap, print } */
int llog_open(lua_State *L);

/* The global `print` logs from now on. */
void llog_take_print(lua_State *L);

#endif
