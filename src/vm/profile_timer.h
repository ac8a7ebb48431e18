/* vm/profile_timer.h - interrupts its own thread, so often in a second of the thread's CPU time, while
 * it is at work.
 *
 * Timers on a thread's CPU clock come with the kernel's tick, 250 a second on many machines; perf's
 * are forbidden in many containers and blind for the kernel; a thread that sends signals takes a
 * switch of threads for each look. So a timer of the real clock runs, at intervals that are drawn by lot, and
 * its signal is worth a sample only if CPU time was used for it. In a thread that sleeps, or hangs in
 * a system call that a signal might break off, it rests. */
#ifndef VM_PROFILE_TIMER_H
#define VM_PROFILE_TIMER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct profile_timer {
    timer_t               id;
    bool                  exists;
    volatile sig_atomic_t is_resting;
    uint64_t              period_ns;
    uint64_t              lot;
    uint64_t              cpu_ns;   /* of the thread at the last tick */
    uint64_t              owed_ns;  /* used since, less what samples stand for */
    unsigned              patience; /* periods to the next tick: more, the longer nothing happens */
};

/* SIGPROF, to the calling thread. False: the system has no more timers. */
bool profile_timer_open(struct profile_timer *timer, unsigned hz);
void profile_timer_close(struct profile_timer *timer); /* idempotent; zeroed memory is closed */

/* The handler: whether this tick is a sample. */
bool profile_timer_tick(struct profile_timer *timer, bool is_at_work);

/* The thread is at work again. */
void profile_timer_wake(struct profile_timer *timer);

#endif
