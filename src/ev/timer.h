/* ev/timer.h - timers on the loop's wheel: O(1) to start and to stop, 1 ms apart, driven by one
 * timerfd that is armed only when the nearest deadline changes.
 *
 * A timer never fires early, and at most 1 ms after it was due while the loop is free: timers of
 * one millisecond fire together when the last of them is due, in the order of their start. */
#ifndef EV_TIMER_H
#define EV_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "ev/wheel.h"

struct loop;

/* struct timer stands in ev/wheel.h, below the loop that fires it. */
void timer_init(struct timer *timer, timer_fn fn);
/* Restarts a running one. The delay counts from this call, not from the start of the turn.
 * 0 fires in the next turn. */
void timer_start_ns(struct timer *timer, struct loop *loop, uint64_t delay_ns);
void timer_start(struct timer *timer, struct loop *loop, uint64_t delay_ms);
void timer_stop(struct timer *timer, struct loop *loop); /* idempotent */

static inline bool timer_is_running(const struct timer *timer)
{
    return list_is_linked(&timer->link);
}

/* --- time limits that share one length: idle, head and request deadlines -------------------- */

/* Entries stand in the order of their start, which is the order of their end. Starting one costs
 * 2 ns and touches no wheel; precision is one tick (100 ms at most, a tenth of short limits). */
struct limit;
typedef void (*limit_fn)(struct limit *limit); /* stopped when this runs */

struct limit {
    struct list link;
    uint64_t    due_ms;
};

struct limit_queue {
    struct loop *loop;
    uint64_t     limit_ms;
    limit_fn     fn;
    struct list  running;
    struct timer tick;
};

/* LIMIT_MS 0 means no limit: limit_start() does nothing. */
void limit_queue_init(struct limit_queue *queue, struct loop *loop, uint64_t limit_ms, limit_fn fn);
void limit_queue_fini(struct limit_queue *queue); /* entries are forgotten, not fired */

void limit_init(struct limit *limit);
void limit_start(struct limit *limit, struct limit_queue *queue); /* restarts */
void limit_stop(struct limit *limit);                             /* idempotent */

#endif
