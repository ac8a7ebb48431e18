/* data/sqlite_lease.h - who keeps a seat between calls, and who gets it next. For data/sqlite*.c. */
#ifndef DATA_SQLITE_LEASE_H
#define DATA_SQLITE_LEASE_H

#include <stdbool.h>

struct list;
struct seat;
struct sqlite_call;
struct sqlite_db;
struct sqlite_lease;

/* For what CALL has begun; not in a seat yet. NULL: no memory. */
struct sqlite_lease *sqlite_lease_new(struct sqlite_db *db, const struct sqlite_call *call);
/* Not the last reference to the database, if it is locked. */
void sqlite_lease_free(struct sqlite_lease *lease);

/* Locked. The seat is free: for its lease's next call, the next of the queue, or nobody. A lease
 * whose holder has let go is rolled back first. Calls that the lane does not take go to REFUSED,
 * with their fault. */
void sqlite_lease_vacate(struct seat *seat, struct list *refused);
/* Locked; CALL has run on SEAT: the lease that it made stays there, the one that it ended goes. */
void sqlite_lease_settle(struct sqlite_call *call, struct seat *seat, struct list *refused);
/* Locked. Rolls back on this thread; the lease stays to be freed. */
void sqlite_lease_end_here(struct sqlite_lease *lease);
/* Locked. The holder wants no more of it, calls that wait in it go to REFUSED. True: it is over, and
 * the caller's to free; else it goes when it has been rolled back. */
bool sqlite_lease_let_go(struct sqlite_lease *lease, struct list *refused);

#endif
