/* ev/wheel.h - where the timers of a loop stand while they run (ev/timer.h is what owners use).
 *
 * Eight levels of 64 slots. A slot of level 0 is one millisecond, one of level 1 is 64 of them,
 * and so on: 2^48 ms in all, more than a uint64_t of nanoseconds holds. A timer stands on the
 * level of the highest digit (to base 64) in which its time differs from the wheel's, so each
 * level's slots lie after the wheel's time and before all those of the level above, and the
 * nearest is the first bit set on the lowest level that has one. Reaching a slot above level 0
 * deals its timers out to the levels below. No clock and no system call in here. */
#ifndef EV_WHEEL_H
#define EV_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct timer;

/* The timer is stopped when this runs, and may be started again or freed. */
typedef void (*timer_fn)(struct timer *timer);

struct timer {
    struct list link; /* its place on the wheel */
    uint64_t    due_ns;
    timer_fn    fn; /* container_of() finds the owner */
};

enum {
    WHEEL_DIGIT_BITS = 6,
    WHEEL_SLOTS      = 1 << WHEEL_DIGIT_BITS,
    WHEEL_LEVELS     = 8,
};

#define WHEEL_NEVER UINT64_MAX

struct wheel {
    uint64_t    at_ms;                            /* slots before this one are empty */
    uint64_t    filled[WHEEL_LEVELS];             /* a bit for each slot that has timers */
    uint64_t    last_due_ns[WHEEL_SLOTS];         /* of each filled slot of level 0 */
    struct list slots[WHEEL_LEVELS][WHEEL_SLOTS]; /* in order of start */
    struct list soon;                             /* started with no delay since ripening */
    struct list ripe;                             /* due: the loop fires them one by one */
};

void wheel_init(struct wheel *wheel, uint64_t now_ns);
bool wheel_is_empty(const struct wheel *wheel);

/* TIMER->due_ns is set and not before the wheel's time. */
void wheel_add(struct wheel *wheel, struct timer *timer);
/* TIMER is to fire in the next turn, whatever the clock says. */
void wheel_add_soon(struct wheel *wheel, struct timer *timer);
/* Also from `ripe`: it does not fire then. Idempotent. */
void wheel_remove(struct wheel *wheel, struct timer *timer);

/* When the wheel is to be looked at next, or WHEEL_NEVER. Not later than the first timer is due
 * to fire; earlier where a slot is to be dealt out on the way. `soon` is not counted. */
uint64_t wheel_next_ns(const struct wheel *wheel);

/* Moves what was started as soon to `ripe`: once at the beginning of a turn. */
void wheel_ripen_soon(struct wheel *wheel);
/* Moves the time on to NOW_NS, and to `ripe` what is due by then. */
void wheel_advance(struct wheel *wheel, uint64_t now_ns);

#endif
