/* server/vitals_worker.h - what one worker does, while somebody looks: numbers that any thread may read
 * (server/vitals_clock.h does), and the samples of its turns.
 *
 * A turn is long when others notice it, and then it is told by itself, with the stacks that were seen in it and
 * with how much of its time was the worker's own: on a busy machine a thread that could go on may have
 * to wait for a processor, which is nobody's fault in the app. */
#ifndef SERVER_VITALS_WORKER_H
#define SERVER_VITALS_WORKER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/hist.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "vm/profile_store.h"

struct err;
struct lhttp_finished;
struct profile;
struct vitals_worker;
struct worker;

enum {
    VITALS_LONG_MS = 10,  /* a turn from here on is told by itself: a client can feel it */
    VITALS_REST_MS = 100, /* what was seen of waiting tasks is kept for so long before it is told */
    VITALS_MARK_US = 2000, /* how old what a long turn is compared with may be */
};

/* What a turn has used of its time; nanoseconds. */
struct vitals_turn {
    uint64_t ended_ns;   /* clock_mono_ns() */
    uint64_t took_ns;    /* 0: there was no long one */
    uint64_t ran_ns;     /* on a processor */
    uint64_t stalled_ns; /* ready to, but others had it */
};

/* Samples on their way from a worker. Whoever takes it frees it with vitals_haul_free(). */
struct vitals_haul {
    struct message        message; /* the taker's */
    struct vitals_worker *from;
    struct vitals_turn    turn;
    struct profile_store  store;
};

void vitals_haul_free(struct vitals_haul *haul);

struct vitals_worker {
    struct worker  *worker;
    struct profile *profile; /* owned */
    /* In the worker's thread, from its turn; takes HAUL. */
    void (*on_haul)(struct vitals_haul *haul, void *arg);
    void *arg;

    struct loop_hook   turn, idle;
    struct later       again;
    uint64_t           began_ns; /* the turn that runs; 0: none does */
    uint64_t           told_ns;  /* the last haul */
    struct vitals_turn longest;  /* since then */
    int                sched_fd; /* schedstat of the thread; -1: this kernel has none */
    struct {
        uint64_t at_ns, cpu_ns, stalled_ns, sleeps;
    } mark;

    /* For any thread. Only ever larger: */
    _Atomic uint64_t active_ns; /* not asleep; without the turn that runs */
    _Atomic uint64_t stalled_ns;
    _Atomic uint64_t failed; /* answers of 500 and above */
    struct hist      times;  /* of requests, in microseconds, to their answer's last byte */
    /* As it is: */
    _Atomic uint64_t longest_ns; /* a turn, since a reader has set 0 here */
    _Atomic uint64_t slowest_us; /* a request; the same */
    _Atomic uint64_t connections, tasks, lua_bytes;
};

int  vitals_worker_open(struct vitals_worker **out, struct worker                  *worker,
                        void (*on_haul)(struct vitals_haul *haul, void *arg), void *arg,
                        struct err *err);
void vitals_worker_close(
    struct vitals_worker *vitals); /* has ended, or its thread has; NULL is fine */

/* The worker's thread, from its turn. */
void vitals_worker_begin(struct vitals_worker *vitals);
void vitals_worker_end(struct vitals_worker *vitals); /* with a last haul */
void vitals_worker_request(struct vitals_worker *vitals, const struct lhttp_finished *finished);

#endif
