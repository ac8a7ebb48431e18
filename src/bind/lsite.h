/* bind/lsite.h - the compiled app of one generation: its routes, and the Lua functions that serve
 * them.
 *
 * srv.web.app builds a site while the app loads; the worker switches to it (bind/lhttp.h). It is
 * the VM's: a userdata holds it, and when the VM goes, the calls that are still being sent lose it. */
#ifndef BIND_LSITE_H
#define BIND_LSITE_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "bind/lcall_table.h"
#include "http/route.h"
#include "vm/vm.h"

struct lsite;

struct lparam {
    char *name;   /* "" when the app is not to see it; owned */
    bool  number; /* becomes one */
};

struct lroute {
    char          *label;      /* "GET /users/:id"; owned, as all texts here */
    char          *path;       /* pattern */
    char          *name;       /* NULL: none */
    int            runner_ref; /* fn(number, params...) -> body, status, headers */
    int            plan_ref;   /* srv.web's own: scope and hooks */
    uint64_t       timeout_ms; /* 0: the server's */
    uint64_t       body_limit; /* UINT64_MAX: the server's */
    bool           finishes;   /* goes on when the client has gone */
    bool           wants_sent; /* has hooks `sent` */
    bool           wants_abort;
    unsigned       param_count; /* of host and path */
    struct lparam *params;
    void          *kept; /* of whoever is told of finished requests (lhttp_finished) */
};

/* What the app's functions do for requests besides running routes; each gets a call's number. */
enum lsite_entry {
    ENTRY_UNMATCHED, /* no route takes the path */
    ENTRY_FAIL,      /* (number, code, message): makes an error's answer */
    ENTRY_LATE,      /* (number, code, message): the same after a cancelled runner */
    ENTRY_RESOLVE,   /* (number, value): makes plain data of what has a __tojson */
    ENTRY_ABORTED,   /* hooks: the client has gone, or the answer was cut */
    ENTRY_SENT,      /* hooks: the last byte is out */
    ENTRY_START,     /* timers and what app:spawn was given; no argument */
    ENTRY_STOP,      /* ends them; hooks; no argument */
    ENTRY_COUNT,
};

struct lhost {
    struct route_pattern *pattern; /* NULL: any host */
    unsigned              param_count;
    struct route_set     *set;
    struct lroute       **routes; /* by the set's ids; owned */
    unsigned              route_count;
};

struct lsite {
    struct handle handle; /* the VM's link to us */
    struct vm    *vm;     /* NULL once it has gone */
    struct lhttp *http;   /* set by the switch */

    struct lhost *hosts; /* [0]: any host; then as the app has ordered them */
    unsigned      host_count;
    bool          sealed;
    int           entry_refs[ENTRY_COUNT];
    int           anchor_refs[ANCHOR_COUNT];
    int           find_ref; /* string.find, for Lua patterns in routes */

    bool ends_events; /* see lsite_end_events() */

    struct list calls; /* in flight, by of_site */
    unsigned    call_count;

    int      own_ref; /* to its own userdata, while it is held or LUA_NOREF */
    unsigned holds;

    void (*on_idle)(struct lsite *site, void *arg); /* the last call has ended; may be NULL */
    void *on_idle_arg;
};

/* The site in the userdata at INDEX; raises when there is none. */
struct lsite *lsite_check(lua_State *L, int index);

/* The site at INDEX is not collected before it was let go as often and its calls have ended: what they
 * leave to be done may last longer than anybody's interest. For sites of tests; others are their
 * generation's. Raises when there is no memory. */
struct lsite *lsite_hold(lua_State *L, int index);
void          lsite_let_go(struct lsite *site);
/* A call has ended, and is off the list. */
void lsite_call_ended(struct lsite *site);

/* --- matching -------------------------------------------------------------------------------------- */

/* Finds the call's route by its request: fills found, route, params, allowed. */
void lsite_match(struct lsite *site, struct lcall *call);
/* The next route that would have matched. False: there is none; the call stays as it is. */
bool lsite_match_next(struct lsite *site, struct lcall *call);

/* Whether VALUE fits a Lua pattern as a whole; ARG is the site. For http/route. */
bool lsite_accepts(void *arg, struct str lua_pattern, struct str value);

/* --- life -------------------------------------------------------------------------------------------- */

/* The site serves from now on: timers and spawned tasks start. From the loop's turn. */
void lsite_start(struct lsite *site);
/* No new request comes: timers and background tasks are cancelled, hooks `stop` run. */
void lsite_retire(struct lsite *site);
/* Event streams end here, those of requests in flight at once and later ones when they have begun:
 * their clients come back by themselves, to whoever serves then. */
void lsite_end_events(struct lsite *site);
/* Cancels the requests in flight: their time is up. */
void lsite_cancel_calls(struct lsite *site, const char *reason);

/* Adds `site` to the module on top of the stack. */
void lsite_register(lua_State *L);

#endif
