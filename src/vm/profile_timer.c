#include "vm/profile_timer.h"

#include <unistd.h>

#include "base/clock.h"

enum {
    OWED_PERIODS_MAX     = 16, /* of CPU time that found no moment to be sampled in */
    PATIENCE_PERIODS_MAX = 32,
};

/* Between half a period and one and a half: even intervals would always meet the same part of what the
 * app does at even intervals. */
static uint64_t draw(struct profile_timer *timer)
{
    timer->lot ^= timer->lot << 13;
    timer->lot ^= timer->lot >> 7;
    timer->lot ^= timer->lot << 17;
    return timer->period_ns / 2 + timer->lot % timer->period_ns;
}

static void arm(struct profile_timer *timer)
{
    uint64_t          ns = draw(timer) + (timer->patience - 1) * timer->period_ns;
    struct itimerspec at = { .it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) } };

    timer_settime(timer->id, 0, &at, NULL);
}

bool profile_timer_open(struct profile_timer *timer, unsigned hz)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };

    event._sigev_un._tid = gettid();
    *timer               = (struct profile_timer){ .period_ns = 1000000000 / hz,
                                                   .lot       = clock_mono_ns() | 1,
                                                   .cpu_ns    = clock_thread_cpu_ns(),
                                                   .patience  = 1 };
    if (timer_create(CLOCK_MONOTONIC, &event, &timer->id) != 0)
        return false;
    timer->exists = true;
    arm(timer);
    return true;
}

void profile_timer_close(struct profile_timer *timer)
{
    if (timer->exists)
        timer_delete(timer->id);
    timer->exists = false;
}

/* The CPU time since the last tick. One that has hardly moved was without a processor or hangs in a system
 * call, and only in the latter is that so again and again. */
static uint64_t use(struct profile_timer *timer)
{
    uint64_t now = clock_thread_cpu_ns(), used = now - timer->cpu_ns;

    timer->cpu_ns = now;
    if (used > timer->period_ns / 16)
        timer->patience = 1;
    else if (timer->patience < PATIENCE_PERIODS_MAX)
        timer->patience *= 2;
    return used;
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
    return value < max ? value : max;
}

bool profile_timer_tick(struct profile_timer *timer, bool is_at_work)
{
    timer->owed_ns = at_most(timer->owed_ns + use(timer), OWED_PERIODS_MAX * timer->period_ns);
    if (!is_at_work) {
        timer->is_resting = 1;
        return false;
    }
    arm(timer);
    if (timer->owed_ns < timer->period_ns)
        return false;
    timer->owed_ns -= timer->period_ns;
    return true;
}

void profile_timer_wake(struct profile_timer *timer)
{
    if (!timer->exists || !timer->is_resting)
        return;
    timer->is_resting = 0;
    timer->patience   = 1;
    arm(timer);
}
