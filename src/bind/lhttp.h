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

#include <stdint.h>

#include <lua.h>

#include "base/str.h"

struct buf;
struct exchange;
struct lcall;
struct lcall_table;
struct lhttp;
struct loop;
struct lsite;

/* One request is over: its answer is out, was cut, or nobody waits for it any more. */
struct lhttp_finished {
    const struct exchange *ex;
    const char            *route; /* "GET /users/:id"; "" without one */
    struct str             id;
    unsigned               status; /* 499: the client left before the head */
    uint64_t               took_ns;
};

struct lhttp_options {
    struct loop *loop;
    uint64_t     timeout_ms; /* where the app says nothing; 0: none */
    /* For the access log; may be NULL. */
    void (*on_finished)(const struct lhttp_finished *finished, void *arg);
    void *arg;
};

struct lhttp *lhttp_new(const struct lhttp_options *options);
/* No call may be left. NULL is fine. */
void lhttp_free(struct lhttp *http);

/* The exchange_fn; ARG is the struct lhttp. */
void lhttp_dispatch(struct exchange *ex, void *arg);

/* New requests go to SITE (NULL: 503) from now on. Returns the one that served until now, for
 * lsite_retire(), or NULL. Does not start SITE. */
struct lsite *lhttp_switch(struct lhttp *http, struct lsite *site);

/* Dispatches to SITE whichever serves: for srv.test. */
void lhttp_dispatch_to(struct lhttp *http, struct lsite *site, struct exchange *ex);

struct lsite       *lhttp_site(const struct lhttp *http); /* that serves, or NULL */
struct lcall_table *lhttp_calls(const struct lhttp *http);
struct buf         *lhttp_scratch(struct lhttp *http); /* for the answer at hand */

/* The request that the running code belongs to, or NULL; and its id, for env->request_id. */
struct lcall *lhttp_current(lua_State *L);
struct str    lhttp_request_id(lua_State *L);

/* srv.core.http: see lua/types/http.d.lua. */
int lhttp_open(lua_State *L);

#endif
