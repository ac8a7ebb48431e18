/* server/profiler_clock.h - a thread that interrupts workers, each so often in a second of its own CPU
 * time.
 *
 * Timers on a thread's CPU clock come with the kernel's tick, 250 a second on many machines, and
 * perf's are forbidden in many containers and blind for the kernel. So somebody looks, at a moment
 * that is drawn by lot within each period, who is at work and has used CPU time that no sample stands
 * for yet. A worker that sleeps is left alone. */
#ifndef SERVER_PROFILER_CLOCK_H
#define SERVER_PROFILER_CLOCK_H

#include <pthread.h>

struct err;
struct loop;
struct profiler_clock;

struct profiler_target {
    pthread_t    thread;
    struct loop *loop; /* what the thread runs */
};

/* Sends SIGPROF to the targets, which are copied; they outlive the clock. */
int profiler_clock_open(struct profiler_clock **out, const struct profiler_target *targets,
                        unsigned count, unsigned hz, struct err *err);
/* No signal is sent once this returns, within a period. NULL is fine. */
void profiler_clock_close(struct profiler_clock *clock);

#endif
