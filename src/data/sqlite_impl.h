/* data/sqlite_impl.h - what data/sqlite*.c share; nobody else includes it.
 *
 * A connection has a seat. Whoever sits there has the connection to itself: a call while it is in
 * the lane or runs, or a lease between its calls. When a call leaves, the thread that ran it puts
 * the next one into the lane: so a queue of writers costs no trip to a loop, and a thread never
 * stays with one database while others wait.
 *
 * One lock for each database guards its queues and seats. Taken under it: the lane's. Nothing that
 * may call back (inbox_post() can drop) happens under it: refused calls are collected and posted
 * after. "Locked" says of a function that its caller holds the lock.
 *
 * Reading order, each knowing those before it: sqlite_call (the record), sqlite_seat (who sits
 * where), sqlite_db (open and closed), sqlite_lease (who keeps a seat, who is next), sqlite_run (on
 * the pool), sqlite (a call's way through all of it). */
#ifndef DATA_SQLITE_IMPL_H
#define DATA_SQLITE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/sqlite_call.h"

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

/* False: the lane does not take it. */
static inline bool sqlite_submit(struct sqlite *sqlite, struct job *job, struct inbox *home)
{
    struct lane *lane = atomic_load(&sqlite->lane);

    return lane && lane_submit(lane, job, home) == 0;
}

#endif
