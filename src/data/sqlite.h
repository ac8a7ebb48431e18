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

#include "data/sqlite_call.h"
#include "data/sqlite_db.h"

struct loop;
struct sqlite_lease;

/* --- calls; the thread of the loop ------------------------------------------------------------ */

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
