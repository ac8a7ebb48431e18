/* bind/lenv.h - srv.core.env: where the app runs, and the settings it runs with. */
#ifndef BIND_LENV_H
#define BIND_LENV_H

#include <lua.h>

/* srv.core.env: { getenv, settings, now, monotonic, http_date, stop, root, version, dev, worker } */
int lenv_open(lua_State *L);

#endif
