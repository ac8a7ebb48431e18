/* data/sqlite_impl.h - what data/sqlite*.c share; nobody else includes it.
 *
 * A connection has a seat. Whoever sits there has the connection to itself: a call while it is in
 * the lane or runs, or a lease between its calls. When a call leaves, the thread that ran it puts
 * the next one into the lane: so a queue of writers costs no trip to a loop, and a thread never
 * stays with one database while others wait.
 *
 * One lock for each database guards its queues and seats. Taken under it: the lane's. Nothing that
 * may call back (inbox_post() can drop) happens under it: refused calls are collected and posted
 * after. "Locked" says of a function that its caller holds the lock. */
#ifndef DATA_SQLITE_IMPL_H
#define DATA_SQLITE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/sqlite.h"

/* --- the process (sqlite.c) ------------------------------------------------------------------ */

struct sqlite {
    _Atomic(struct lane *) lane; /* borrowed; NULL: the process ends, nothing is asked any more */
    pthread_mutex_t        lock; /* the list, and the way of a database out of it */
    struct list            databases;
    bool                   closed; /* goes with its last database */
};

struct seat {
    struct sqlite_db    *db;
    struct list          link; /* a free reader's, in db->free_readers */
    struct list          all;  /* in db->readers */
    bool                 writes;
    struct sqlite_conn  *conn;    /* opened by the first call */
    struct sqlite_call  *running; /* in the lane or on its thread */
    struct sqlite_lease *lease;   /* who has the seat between calls */
};

struct sqlite_db {
    struct list    link; /* in sqlite->databases */
    struct sqlite *sqlite;
    char          *path; /* owned */
    bool           memory;
    atomic_uint    refs; /* who opened it, calls under way, leases */
    struct job     closing;

    pthread_mutex_t lock;
    struct seat     writer;
    struct list     readers, free_readers;
    unsigned        reader_count, readers_max;
    struct list     write_queue, read_queue;
    unsigned        waiting, waiting_max; /* in both queues and those of leases */
};

enum lease_kind {
    LEASE_TX,
    LEASE_CURSOR, /* over with the last row */
};

struct sqlite_lease {
    struct sqlite_db  *db;
    enum lease_kind    kind;
    bool               blocks;
    struct seat       *seat;  /* NULL: over, or not yet given */
    struct list        queue; /* calls behind the one that runs */
    bool               closed;
    struct sqlite_call last; /* rolls back */
};

void sqlite_db_ref(struct sqlite_db *db);
/* The last one closes the connections on the lane. Not under the lock, unless another one is left. */
void sqlite_db_unref(struct sqlite_db *db, struct inbox *home);
/* False: the lane does not take it. */
bool sqlite_submit(struct sqlite *sqlite, struct job *job, struct inbox *home);

/* --- seats (sqlite_seat.c); locked --------------------------------------------------------------- */

void sqlite_seat_init(struct seat *seat, struct sqlite_db *db, bool writes);
/* The seat that CALL may take now; NULL: it has to wait. */
struct seat *sqlite_seat_find(struct sqlite_db *db, const struct sqlite_call *call);
/* False: the lane is full; the seat is still nobody's, and to be put back. */
bool sqlite_seat_take(struct seat *seat, struct sqlite_call *call);
/* For the next one who looks for one. */
void sqlite_seat_put_back(struct seat *seat);
/* The seat is free: for its lease's next call, the next of the queue, or nobody. Calls that the lane
 * does not take go to REFUSED, with their fault. */
void sqlite_seat_vacate(struct seat *seat, struct list *refused);

void sqlite_seat_start_waiting(struct sqlite_db *db, struct sqlite_call *call);
/* The first of a queue, which waits no more; NULL: it is empty. */
struct sqlite_call *sqlite_seat_take_waiting(struct sqlite_db *db, struct list *queue);
void                sqlite_seat_stop_waiting(struct sqlite_db *db, struct sqlite_call *call);

/* --- leases (sqlite_lease.c) ------------------------------------------------------------------------ */

/* For what CALL has begun; not in a seat yet. NULL: no memory. */
struct sqlite_lease *sqlite_lease_new(struct sqlite_db *db, const struct sqlite_call *call);
/* Locked. A lease whose holder has let go is rolled back on the pool, or here if that has closed. */
void sqlite_lease_roll_back(struct sqlite_lease *lease);
/* Locked. The same, here; the lease stays to be freed. */
void sqlite_lease_end_here(struct sqlite_lease *lease);
/* Locked; CALL has run on SEAT: the lease that it made stays there, the one that it ended goes. */
void sqlite_lease_settle(struct sqlite_call *call, struct seat *seat, struct list *refused);

/* --- calls (sqlite_call.c, sqlite_run.c) --------------------------------------------------------------- */

/* Locked. Into the lane; false: it does not take it. */
bool sqlite_call_submit(struct sqlite_call *call);
/* Unlocked. Posts each to its loop. */
void sqlite_call_refuse(struct list *refused);
/* On the pool: does it, on the seat's connection. */
void sqlite_call_run(struct sqlite_call *call);

#endif
