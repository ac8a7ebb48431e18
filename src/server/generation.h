/* server/generation.h - one version of the app on one worker: its VM from loading to closing
 * (CORE, decision 13 and seam 5).
 *
 *     LOADING -> READY -> CURRENT -> RETIRING -> CLOSING -> gone
 *
 * Many may be there at once; the one that is CURRENT takes new requests. Those that a generation
 * has begun it also ends: RETIRING lasts until the last is answered, or its time is up. The VM is
 * closed on the pool, since a large heap takes long. All on the worker's thread. */
#ifndef SERVER_GENERATION_H
#define SERVER_GENERATION_H

#include <stdint.h>

#include "base/list.h"
#include "bind/env.h"
#include "bind/lboot.h"
#include "ev/loop.h"
#include "ev/pool.h"
#include "ev/timer.h"

struct config;
struct generation;
struct lsite;
struct vm;

enum generation_state {
    GENERATION_LOADING,  /* app.lua runs; it may wait */
    GENERATION_READY,    /* loaded, not yet asked for */
    GENERATION_CURRENT,  /* takes new requests */
    GENERATION_RETIRING, /* answers what it has */
    GENERATION_CLOSING,  /* every task is cancelled; their defers run */
    GENERATION_CLOSED,   /* the pool closes its VM */
};

enum {
    GENERATION_FIRST_MS = 40000, /* as below, at a start: its databases may be starting, too */
    GENERATION_LOAD_MS  = 10000, /* for app.lua, all it requires, and its migrations */
    GENERATION_CLOSE_MS = 6000,  /* defers have 5 s of their own */
};

/* What the worker hears; each is the last thing that the call does. */
struct generation_owner {
    void (*on_loaded)(struct generation *generation);
    void (*on_failed)(struct generation *generation, const char *why); /* closes by itself */
    void (*on_closed)(struct generation *generation);                  /* freed after this */
};

struct generation {
    struct list                    link; /* the owner's */
    const struct generation_owner *owner;
    void                          *arg; /* the owner's */
    const struct config           *config;
    unsigned                       version;
    enum generation_state          state;
    struct env                     env;
    struct vm                     *vm;
    struct lsite                  *site; /* NULL until it is loaded; the VM's */
    struct timer                   limit;
    struct lboot                   boot;
    struct later                   close; /* closing is never done inside a callback of the VM */
    struct later                   idle;  /* nor is this: nobody is served any more */
    struct job                     job;
};

/* Begins to load; NULL when there is no memory for a VM. ENV is copied. on_loaded or on_failed
 * follows, from the loop's turn. */
struct generation *generation_load(const struct env *env, const struct config *config,
                                   unsigned version, const struct generation_owner *owner,
                                   void *arg);

/* READY -> CURRENT: new requests come here. The one that was CURRENT is to be retired. */
void generation_serve(struct generation *generation);

/* The process drains: event streams do not wait for its end, web sockets are closed with 1001. */
void generation_end_events(struct generation *generation);

/* CURRENT -> RETIRING: for at most DRAIN_MS; event streams end now, web sockets are closed with 1012. */
void generation_retire(struct generation *generation, uint64_t drain_ms);

/* No connection is left: closes, once the handlers of what has ended are over, or after LIMIT_MS. */
void generation_finish(struct generation *generation, uint64_t limit_ms);

/* Cancels everything it does, in whichever state. */
void generation_close(struct generation *generation);

/* Ends it at once, outside of the loop: the worker's thread has ended. Nobody is told. One that
 * the pool is closing is left to the pool. */
void generation_abandon(struct generation *generation);

#endif
