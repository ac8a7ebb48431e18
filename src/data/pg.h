/* data/pg.h - PostgreSQL by libpq's asynchronous and pipeline modes: what the process has, and what
 * each of its workers has.
 *
 * pg_pool_open() gives a pool, pg_start() sends a call (data/pg_pool.h), data/pg_copy.h copies. A pool
 * without a user stays for a while: the next generation of the app takes it over. */
#ifndef DATA_PG_H
#define DATA_PG_H

#include "data/pg_pool.h"

struct dns;
struct err;
struct loop;
struct pg;
struct pg_worker;

/* The process's: libpq, and how many connections there are. Any thread may use it. */
int  pg_open(struct pg **out, struct err *err);
void pg_close(struct pg *pg); /* after its workers; NULL is fine */

/* One worker's pools; its thread's alone. DNS may be NULL: then only addresses are connected to. */
int  pg_worker_open(struct pg_worker **out, struct pg *pg, struct loop *loop, struct dns *dns,
                    struct err *err);
void pg_worker_close(struct pg_worker *worker); /* no calls, no leases; NULL is fine */

/* Does not wait and does not connect; the first one of the process loads libpq. ERR_INVALID: the URL;
 * ERR_NOT_FOUND: there is no libpq. OPTIONS are copied. */
int  pg_pool_open(struct pg_pool **out, struct pg_worker *worker, const struct pg_options *options,
                  struct err *err);
void pg_pool_close(struct pg_pool *pool);

/* Of all pools of the worker. */
void pg_worker_stats(const struct pg_worker *worker, struct pg_stats *out);

#endif
