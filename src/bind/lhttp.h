/* bind/lhttp.h - a worker's requests to Lua: which generation takes them, and what is told of them.
 *
 * The wire calls lhttp_dispatch() for each request head. The route is found in C, a task runs its
 * generated runner, and what it returns is answered from C. Every exchange is answered: errors go
 * through the app's formatters, those that fail get a plain 500, a missed deadline a 503.
 *
 * Life of a generation: its VM loads the app, which makes a site (lsite_check() on what
 * srv.web.app's install() returned); lhttp_switch() makes it the one that serves; when
 * site->call_count is 0 (on_idle tells) its VM may close. */
#ifndef BIND_LHTTP_H
#define BIND_LHTTP_H

#include <lua.h>

#include "base/str.h"
#include "bind/lhttp_dispatch.h"
#include "bind/lhttp_state.h"

struct lcall;
struct lsite;

/* New requests go to SITE (NULL: 503) from now on. Returns the one that served until now, for
 * lsite_retire(), or NULL. Does not start SITE. */
struct lsite *lhttp_switch(struct lhttp *http, struct lsite *site);

/* The request that the running code belongs to, or NULL; and its id, for env->request_id. */
struct lcall *lhttp_current(lua_State *L);
struct str    lhttp_request_id(lua_State *L);

/* srv.core.http: see lua/types/http.d.lua. */
int lhttp_open(lua_State *L);

#endif
