/* bind/ldict.h - srv.core.dict: dictionaries that all workers share (API, section 10), which
 * lua/srv/async/shared.lua hands out.
 *
 * A dictionary's methods here are the API's own; get_or_compute and open are Lua over them. */
#ifndef BIND_LDICT_H
#define BIND_LDICT_H

#include <lua.h>

/* srv.core.dict: open(name, bytes), lease(dict, key), Dict: the metatable */
int ldict_open(lua_State *L);

#endif
