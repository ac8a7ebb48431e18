/* data/sqlite_call.h - one piece of work for a database: what is asked, and what came of it.
 *
 * The record alone; data/sqlite.h says how it is started and what way it goes. */
#ifndef DATA_SQLITE_CALL_H
#define DATA_SQLITE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "data/fault.h"
#include "data/rows.h"
#include "data/sqlite_conn.h"
#include "data/values.h"
#include "ev/inbox.h"
#include "ev/pool.h"
#include "ev/timer.h"

struct loop;
struct seat;
struct sqlite_db;
struct sqlite_lease;

enum sqlite_verb {
    CALL_RUN,    /* one statement */
    CALL_CURSOR, /* one statement, its rows in batches */
    CALL_FETCH,  /* the next batch */
    CALL_SCRIPT, /* statements without parameters; in a lease only */
    CALL_BEGIN,
    CALL_COMMIT, /* the transaction is over, whatever it answers */
    CALL_ROLLBACK,
    CALL_MARK, /* a savepoint */
};

struct sqlite_call {
    /* Set by the owner. */
    enum sqlite_verb      verb;
    struct sqlite_lease  *lease;      /* NULL: a connection of the call's own */
    struct buf            sql;        /* RUN, CURSOR, SCRIPT; owned */
    struct values         params;     /* RUN, CURSOR; owned */
    enum rows_keep        keep;       /* RUN */
    struct sqlite_cursor *cursor;     /* FETCH: what CURSOR gave */
    enum sqlite_tx        tx;         /* BEGIN */
    enum sqlite_mark      mark;       /* MARK */
    unsigned              depth;      /* MARK */
    uint64_t              timeout_ms; /* from the start, waiting included; 0: none */

    /* On the loop's thread; the owner has the call again. `fault`, `rows`, and for BEGIN and
     * CURSOR `lease`, `cursor` hold the outcome. */
    void (*done)(struct sqlite_call *call);
    /* Any thread, instead of done(): the call was cancelled, or its loop has gone. */
    void (*drop)(struct sqlite_call *call);

    struct fault fault;
    struct rows  rows;

    /* For data/sqlite*.c; db->lock guards what the pool's threads look at. */
    struct sqlite_db *db;
    struct loop      *loop;
    struct inbox     *home;
    struct list       link;
    struct job        job;
    struct message    refusal;
    struct timer      wait_limit;
    struct seat      *seat; /* set while a connection is ours */
    uint64_t          deadline_ns;
    bool              waiting;   /* in a queue */
    bool              writes;    /* for the writer */
    bool              ran;       /* on the pool, since it was last submitted */
    bool              misplaced; /* it ran into a reader, and writes */
    bool              leased;    /* `lease` was made by this call */
    bool              orphaned;  /* loop's thread: cancelled, nobody waits */
};

/* Allocates nothing. The owner sets done, drop and what the verb asks for. */
void sqlite_call_init(struct sqlite_call *call, enum sqlite_verb verb);
/* Frees inputs and outcome, but not a lease. */
void sqlite_call_fini(struct sqlite_call *call);

#endif
