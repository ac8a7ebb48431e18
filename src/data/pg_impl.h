/* data/pg_impl.h - what a pool is made of, for the files that work on it; data/pg_pool.h is for those who
 * use it. */
#ifndef DATA_PG_IMPL_H
#define DATA_PG_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "data/fault.h"
#include "data/pg_types.h"
#include "data/pg_url.h"
#include "data/pg_wire.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct cancel;
struct dns;
struct pg_member;
struct pg_pool;

struct pg_options {
    const char *url;
    unsigned    connections; /* of the process */
    unsigned    waiting;     /* calls that may wait in this worker, then `busy` */
    uint64_t    timeout_ms;  /* of a statement, waiting included; 0: none */
};

struct pg_stats {
    unsigned open, idle, leased, connecting;
    unsigned waiting;   /* calls in queues */
    unsigned in_flight; /* statements on their way */
    uint64_t statements, orphaned, cancelled, connects, connects_failed;
};

enum seat_state {
    SEAT_CONNECTING,
    SEAT_SHARED,   /* takes statements of their own; idle: nothing on its way */
    SEAT_RETIRED,  /* its oldest statement is slow: nothing more until all have ended */
    SEAT_RESERVED, /* a lease waits for its end */
    SEAT_LEASED,
    SEAT_CLEANING, /* the lease is over, the transaction is being rolled back */
    SEAT_STOPPING, /* the lease is over; closed when the server had time to stop what runs */
    SEAT_DOOMED,   /* to be closed in the next round of the turn */
};

struct pg_seat {
    struct pg_wire   wire;
    struct list      link;
    struct pg_pool  *pool;
    enum seat_state  state;
    struct pg_lease *lease;    /* LEASED */
    struct cancel   *cancel;   /* on its way to the server, on another wire */
    uint64_t         since_ns; /* in this state, or idle */
};

/* Keeps a connection for several calls. Held by its owner until pg_lease_close(), whatever
 * happens to the connection. */
struct pg_lease {
    struct pg_pool *pool;
    struct pg_seat *seat;    /* NULL: the connection has gone */
    struct fault    fault;   /* why */
    bool            spoiled; /* the session was changed: the connection is not used again */

    /* The owner's, from the loop's turn; may be NULL: a notification; COPY can go on, or the
     * connection has gone. */
    void (*on_note)(struct pg_lease *lease, struct str channel, struct str text);
    void (*on_event)(struct pg_lease *lease);
    void *arg;
};

struct pg_pool {
    struct list                 link; /* the worker's list */
    const struct pg_lib        *lib;
    struct loop                *loop;
    struct dns                 *dns;
    struct pg_url               url;
    const struct pg_wire_hooks *hooks;
    struct pg_member           *member;
    char                       *key;     /* owned */
    struct pg_options           options; /* its url is in `key` */
    unsigned                    users;   /* handles and leases */
    struct timer                unused;
    void (*on_unused)(struct pg_pool *pool);

    struct list  seats;
    unsigned     seat_count, connecting;
    struct list  calls, begins; /* waiting */
    struct list  ended;         /* their lease was closed: told in the next round */
    struct list  cancels;       /* on their way to the server */
    unsigned     waiting;
    unsigned     begins_waiting;
    struct later round; /* dispatches, and closes what is doomed */

    bool         down; /* the last connect failed and nothing works: calls are refused at once */
    struct fault why;
    unsigned     backoff_ms;
    uint64_t     grow_after_ns;
    struct timer retry;
    struct timer tick;

    struct pg_own_types own_types;
    struct pg_costs     costs;
    struct limit_queue  limits, lease_limits;
    struct pg_stats     stats; /* the counting ones */
};

#endif
