/* data/pg_call.h - one piece of work for a PostgreSQL server: what is asked, and what came of it.
 *
 * The record alone; data/pg.h says how it is started. */
#ifndef DATA_PG_CALL_H
#define DATA_PG_CALL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/list.h"
#include "data/fault.h"
#include "data/pg_rows.h"
#include "data/values.h"
#include "ev/timer.h"

struct pg_lease;
struct pg_op;
struct pg_pool;
struct pg_wire;

enum pg_verb {
    PG_RUN,    /* one statement */
    PG_BEGIN,  /* a lease; then `sql`, unless it is empty */
    PG_SCRIPT, /* statements without parameters, in a lease */
    PG_COPY,   /* a COPY, in a lease, up to where data flows */
};

enum { PG_SQL_BYTES_MAX = 16 * 1024 * 1024 };

struct pg_call {
    /* Set by the owner. */
    enum pg_verb     verb;
    struct pg_lease *lease;    /* RUN: NULL is a shared connection. BEGIN sets it */
    struct buf       sql;      /* owned */
    struct values    params;   /* owned; RUN */
    bool             own;      /* text of ours: BEGIN, COMMIT and the like are allowed */
    bool             no_limit; /* in a lease: takes the time it takes */

    /* From the loop's turn; `fault`, `rows` and for BEGIN `lease` hold the outcome. Not after
     * pg_cancel(). */
    void (*done)(struct pg_call *call);
    struct fault   fault;
    struct pg_rows rows;

    /* For data/pg_*.c. */
    struct pg_pool *pool;
    struct pg_wire *wire; /* that it was sent on */
    struct pg_op   *op;   /* sent, and not over */
    struct list     link; /* in a queue of the pool */
    struct limit    limit;
    bool            retried;
};

/* Allocates nothing. */
void pg_call_init(struct pg_call *call, enum pg_verb verb);
/* It is not started, or done, or cancelled. Does not close a lease. */
void pg_call_fini(struct pg_call *call);

/* For data/pg_*.c: from the turn, its outcome is there. */
void pg_call_end(struct pg_call *call);

#endif
