/* data/sqlite.h - the process's SQLite databases: who may use which connection when.
 *
 * A file that is open has one writer connection and, beside it, readers (WAL: neither waits for the
 * other). A database in memory has the writer alone. All workers share them; callers wait in fair
 * queues, no thread does. Statements run on the pool's lane, one at a time for each connection.
 *
 * A *call* is one piece of work and comes home to the loop that started it. A *lease* keeps one
 * connection for several calls: a transaction, or a result that is read in batches. */
#ifndef DATA_SQLITE_H
#define DATA_SQLITE_H

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

struct err;
struct lane;
struct loop;
struct sqlite;
struct sqlite_db;
struct sqlite_lease;

/* --- databases; any thread ------------------------------------------------------------------- */

/* What the process has open. LANE is borrowed: its bound should leave room for the connections of
 * all databases together. */
int sqlite_open(struct sqlite **out, struct lane *lane, struct err *err);
/* Before the loops are closed; on either side of pool_close(). Later calls are refused; what is open
 * closes with its last call or user. */
void sqlite_close(struct sqlite *sqlite);

struct sqlite_options {
    const char *path;            /* absolute, or ":memory:" with a name or without */
    unsigned    connections_max; /* readers and writer; at least 2 */
    unsigned    waiting_max;     /* calls that wait for a connection; beyond it: ERR_BUSY */
};

/* The database of that path, opened before or new: the last one to open it sets the bounds. Does
 * not touch the file: what is wrong with it shows in the first call. */
int sqlite_db_open(struct sqlite_db **out, struct sqlite *sqlite,
                   const struct sqlite_options *options, struct err *err);
/* Lets go. The last one's connections close on the lane, once no call and no lease is left; a
 * database in memory is gone then. HOME outlives that (ev/pool.h). */
void sqlite_db_close(struct sqlite_db *db, struct inbox *home);

/* --- calls; the thread of the loop ------------------------------------------------------------ */

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

    /* Private; db->lock guards what the pool's threads look at. */
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

/* 0: done() or drop() will run later, in no case before this returns. Else the call is still the
 * owner's, `fault` says why: `busy`, or `closed` for a lease that is over. */
int sqlite_start(struct sqlite_call *call, struct sqlite_db *db, struct loop *loop);

/* Whether a call without a lease will ask for the writer: then it waits for a lease that blocks. */
bool sqlite_is_for_writer(const struct sqlite_db *db, const struct sqlite_call *call);

/* Between sqlite_start() and done(): drop() runs now or later. A statement that runs is
 * interrupted, and a lease that was just given is closed. */
void sqlite_cancel(struct sqlite_call *call);

/* --- leases ------------------------------------------------------------------------------------ */

/* BEGIN makes one, and a CURSOR that has more rows and was given none. Rolls back what is open; the
 * connection goes to the next in the queue after that. Calls that wait in it fail with `closed`;
 * a running one should have been cancelled. Frees the lease. Any thread. */
void sqlite_lease_close(struct sqlite_lease *lease);

/* Whether it keeps others from writing: TX_WRITE and TX_MIGRATE, and any in memory. */
bool sqlite_lease_blocks(const struct sqlite_lease *lease);

#endif
