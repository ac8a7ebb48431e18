/* ev/pool.h - threads for work that blocks: SQLite, files, password hashes, big compressions.
 *
 * Work goes to a lane: a bounded queue with threads of its own, so that slow files do not hold
 * up databases. A job is its owner's memory with its inputs copied in; nothing of a VM may be
 * touched by run(). Completions come back by the owner's inbox, many with one wake-up. */
#ifndef EV_POOL_H
#define EV_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "ev/inbox.h"

struct err;
struct job;
struct lane;
struct pool;

enum job_state {
    JOB_IDLE,
    JOB_QUEUED,   /* in the lane; job_cancel() can still take it out */
    JOB_RUNNING,  /* on a pool thread; `cancelled` may be looked at by run() */
    JOB_FINISHED, /* posted to the inbox */
};

/* Zeroed memory with run, done and drop set is a job ready to submit. */
struct job {
    struct message message; /* private: how the job comes home */
    struct list    link;    /* private: its place in the lane */
    struct lane   *lane;    /* set by lane_submit() */
    struct inbox  *home;    /* set by lane_submit(); outlives the job */
    _Atomic int    state;   /* enum job_state */
    atomic_bool    cancelled;

    void (*run)(struct job *job);  /* on a pool thread */
    void (*done)(struct job *job); /* on home's thread; owns the job from here */
    void (*drop)(struct job *job); /* any thread, instead of done(): frees the job */
};

/* The process's pool. Threads start with their lane. */
int pool_open(struct pool **out, struct err *err);
/* Queued jobs are dropped; running ones are waited for, so their homes must still be there.
 * Nobody may submit any more once this returns. NULL is fine. */
void pool_close(struct pool *pool);

/* THREADS at most, started when needed; QUEUE_MAX jobs may wait. Lanes live as long as the pool. */
int lane_open(struct lane **out, struct pool *pool, const char *name, unsigned threads,
              unsigned queue_max, struct err *err);

struct lane_stats {
    const char *name;
    unsigned    queued;  /* jobs that wait */
    unsigned    running; /* on a thread of the lane */
    unsigned    threads; /* started so far */
    uint64_t    done;    /* since the start */
    uint64_t    refused; /* there were too many */
};
void lane_stats(struct lane *lane, struct lane_stats *out); /* any thread */

/* Any thread. 0, or the job stays the caller's: ERR_BUSY when the queue is full, ERR_CLOSED while
 * the pool closes, ERR_SYSTEM when the lane has no thread and none can be started. */
int lane_submit(struct lane *lane, struct job *job, struct inbox *home);

/* Home's thread, between lane_submit() and done(), and not after inbox_close(home): the job may
 * have been dropped then. True: it was still queued and is the caller's again; neither done() nor
 * drop() will run. False: `cancelled` is set; done() or drop() will still run. */
bool job_cancel(struct job *job);

#endif
