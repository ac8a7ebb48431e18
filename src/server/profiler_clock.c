#include "server/profiler_clock.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/thread.h"

enum { OWED_PERIODS_MAX = 16 }; /* of CPU time that found no moment to be sampled in */

struct target {
    struct profiler_target of;
    clockid_t              clock;
    uint64_t               cpu_ns;  /* at the last look */
    uint64_t               owed_ns; /* used since, less what samples stand for */
};

struct profiler_clock {
    struct thread  thread;
    sem_t          stop;
    uint64_t       period_ns;
    uint64_t       lot;
    unsigned       count;
    struct target *targets;
};

static uint64_t cpu_ns(const struct target *target)
{
    struct timespec ts;

    if (clock_gettime(target->clock, &ts) != 0)
        return target->cpu_ns;
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One that has not moved since the last look hangs in a system call that a signal might break off. */
static void look_at(const struct profiler_clock *clock, struct target *target)
{
    uint64_t now = cpu_ns(target), used = now - target->cpu_ns;

    target->cpu_ns = now;
    target->owed_ns += used;
    if (target->owed_ns > OWED_PERIODS_MAX * clock->period_ns)
        target->owed_ns = OWED_PERIODS_MAX * clock->period_ns;
    if (used == 0 || target->owed_ns < clock->period_ns || !loop_busy_since_ns(target->of.loop))
        return;
    target->owed_ns -= clock->period_ns;
    pthread_kill(target->of.thread, SIGPROF);
}

/* Below half a period: looks at even intervals would always meet the same part of what the app does at
 * even intervals. */
static uint64_t draw(struct profiler_clock *clock)
{
    clock->lot ^= clock->lot << 13;
    clock->lot ^= clock->lot >> 7;
    clock->lot ^= clock->lot << 17;
    return clock->lot % (clock->period_ns / 2);
}

static bool is_stopped_by(struct profiler_clock *clock, uint64_t at_ns)
{
    struct timespec ts = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) };

    for (;;) {
        if (sem_clockwait(&clock->stop, CLOCK_MONOTONIC, &ts) == 0)
            return true;
        if (errno != EINTR)
            return false;
    }
}

/* Behind its time, it does not catch up. */
static void run(void *arg)
{
    struct profiler_clock *clock = arg;
    uint64_t               next  = clock_mono_ns() + clock->period_ns;

    while (!is_stopped_by(clock, next + draw(clock))) {
        uint64_t now = clock_mono_ns();

        for (unsigned i = 0; i < clock->count; i++)
            look_at(clock, &clock->targets[i]);
        next += clock->period_ns;
        if (next + clock->period_ns < now)
            next = now;
    }
}

static int start(struct profiler_clock *clock, const struct profiler_target *targets,
                 struct err *err)
{
    clock->targets = calloc(clock->count, sizeof(*clock->targets));
    if (!clock->targets)
        return err_set(err, ERR_MEMORY, "no memory for a profile");
    for (unsigned i = 0; i < clock->count; i++) {
        struct target *target = &clock->targets[i];

        target->of = targets[i];
        if (pthread_getcpuclockid(target->of.thread, &target->clock) != 0)
            return err_set(err, ERR_SYSTEM, "a worker has no CPU clock");
        target->cpu_ns = cpu_ns(target);
    }
    return thread_start(&clock->thread, "profiler", 0, run, clock, err);
}

static void free_clock(struct profiler_clock *clock)
{
    sem_destroy(&clock->stop);
    free(clock->targets);
    free(clock);
}

int profiler_clock_open(struct profiler_clock **out, const struct profiler_target *targets,
                        unsigned count, unsigned hz, struct err *err)
{
    struct profiler_clock *clock = calloc(1, sizeof(*clock));
    int                    rc;

    if (!clock)
        return err_set(err, ERR_MEMORY, "no memory for a profile");
    clock->period_ns = 1000000000 / hz;
    clock->lot       = clock_mono_ns() | 1;
    clock->count     = count;
    sem_init(&clock->stop, 0, 0);
    rc = start(clock, targets, err);
    if (rc == 0)
        *out = clock;
    else
        free_clock(clock);
    return rc;
}

void profiler_clock_close(struct profiler_clock *clock)
{
    if (!clock)
        return;
    sem_post(&clock->stop);
    thread_join(&clock->thread);
    free_clock(clock);
}
