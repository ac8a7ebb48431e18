/* load/load.h - a load generator: sends requests over many connections from threads of its own and
 * counts what becomes of them. It knows HTTP/1.1 and HTTP/2, and no Lua.
 *
 * Closed loop (rate 0): each connection sends its next request when a response has ended. Open loop:
 * requests are due at a constant rate, and latency counts from the moment a request was due, so a
 * server that stalls is seen to stall. */
#ifndef LOAD_LOAD_H
#define LOAD_LOAD_H

#include <stdbool.h>

#include "load/load_count.h"
#include "load/load_plan.h"

struct err;
struct load;

/* A moment's sums. sent = the statuses + faults + what is under way. */
struct load_totals {
    uint64_t     elapsed_ns; /* since the start; of a load that has ended: until then */
    uint64_t     sent, mismatched, late, backlog, connections, unasked;
    uint64_t     bytes_in, bytes_out;
    uint64_t     cpu_ns; /* of all threads */
    uint64_t     statuses[LOAD_STATUSES];
    uint64_t     faults[LOAD_FAULTS];
    struct hist *latency, *service; /* the caller's, added to; NULL: not asked for */
};

/* Starts at once. PLAN is copied, what it points to is borrowed. ON_OVER comes once, from a thread of
 * the load, when the last of them has ended: the plan is done, or it was stopped. Raises the
 * process's limit of descriptors if it must. 0, ERR_MEMORY, ERR_SYSTEM, or ERR_TOO_LARGE: more
 * connections or larger requests than can be had. */
int  load_start(struct load **out, const struct load_plan *plan, void (*on_over)(void *arg),
                void *arg, struct err *err);
void load_stop(struct load *load); /* soon; idempotent */
/* After ON_OVER. 0, or why it came to nothing: no connection has got as far as a request, and none will. */
int  load_failure(const struct load *load, struct err *err);
void load_free(struct load *load); /* stops it and waits for its threads; NULL is fine */

/* Any thread. The sums are not of one instant while the load runs. */
void load_read(const struct load *load, struct load_totals *totals);

#endif
