/* tests/support/settle.h - lets a loop do all that can be done without time passing. */
#ifndef TESTS_SUPPORT_SETTLE_H
#define TESTS_SUPPORT_SETTLE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct settling {
    struct loop     *loop;
    struct loop_hook idle;
    struct timer     nudge;
    bool             was_idle;
};

static inline void settle_on_nudge(struct timer *timer)
{
}

/* The loop is idle before it has looked at the sockets, so one more turn follows the first time. */
static inline void settle_on_idle(struct loop_hook *hook)
{
    struct settling *settling = container_of(hook, struct settling, idle);

    if (settling->was_idle)
        loop_break(settling->loop);
    else
        timer_start_ns(&settling->nudge, settling->loop, 0);
    settling->was_idle = true;
}

static inline void settle(struct loop *loop)
{
    struct settling settling = { .loop = loop };

    timer_init(&settling.nudge, settle_on_nudge);
    loop_hook_init(&settling.idle, settle_on_idle);
    loop_on_idle(loop, &settling.idle);
    loop_run(loop);
    loop_hook_remove(&settling.idle);
    timer_stop(&settling.nudge, loop);
}

#endif
