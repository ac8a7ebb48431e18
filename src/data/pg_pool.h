/* data/pg_pool.h - one worker's connections to one PostgreSQL server, and who waits for them.
 *
 * A connection sits in a *seat*. Statements of their own go to shared seats, pipelined; a *lease*
 * has a seat to itself: a transaction, a COPY, LISTEN. Everything belongs to the loop's thread; only
 * the number of connections is the process's (data/pg_budget.h). */
#ifndef DATA_PG_POOL_H
#define DATA_PG_POOL_H

#include "data/pg_call.h"
#include "data/pg_impl.h"

struct err;
struct pg_budgets;

/* OUT is zeroed memory of the caller's. 0, or an error with a text. */
int  pg_pool_init(struct pg_pool *pool, const struct pg_lib *lib, struct pg_budgets *budgets,
                  const struct pg_options *options, struct dns *dns, struct loop *loop,
                  struct err *err);
void pg_pool_fini(struct pg_pool *pool); /* no calls, no leases */
/* One user more, or less: without any it calls on_unused() after a while, from the turn. Leases are
 * users. */
void pg_pool_use(struct pg_pool *pool);
void pg_pool_unuse(struct pg_pool *pool);
void pg_pool_stats(const struct pg_pool *pool, struct pg_stats *sum); /* adds */

/* 0: done() will come. -1: `fault` says why, and the call is the owner's: `busy`, `unavailable`,
 * `sql` (what an app may not send), `closed` (the lease's connection has gone). */
int pg_start(struct pg_call *call, struct pg_pool *pool);
/* Between pg_start() and done(), which does not come any more. A statement in a lease takes the
 * lease's connection with it: the server is told to stop. */
void pg_cancel(struct pg_call *call);

/* What is open is rolled back; the connection is used again if it is clean within a second. NULL is
 * fine. Calls in it must be over or cancelled. */
void pg_lease_close(struct pg_lease *lease);

#endif
