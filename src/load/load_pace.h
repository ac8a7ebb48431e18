/* load/load_pace.h - when the requests of an open loop are due: one after the other at a constant
 * rate, whatever became of those before (no coordinated omission). The threads of a load share one
 * schedule: of N threads each has every Nth moment of it. */
#ifndef LOAD_LOAD_PACE_H
#define LOAD_LOAD_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "ev/loop.h"

struct err;
struct load_pace;

typedef void (*load_pace_fn)(struct load_pace *pace);

struct load_pace {
    uint64_t     start_ns;
    double       interval_ns; /* between moments of this thread; 0: it has no pace */
    double       offset_ns;
    uint64_t     next; /* moments taken so far */
    int          fd;   /* a timerfd, since the loop's wheel counts milliseconds */
    struct io    io;
    load_pace_fn on_due;
};

/* RATE a second for all THREADS together, the first moment at START_NS of the monotonic clock. ON_DUE
 * comes from the loop's turn. 0, or ERR_SYSTEM. */
int  load_pace_open(struct load_pace *pace, struct loop *loop, double rate, unsigned thread,
                    unsigned threads, uint64_t start_ns, load_pace_fn on_due, struct err *err);
void load_pace_close(struct load_pace *pace); /* idempotent, once opened or zeroed with fd -1 */

/* True: the next moment has come by NOW_NS, and is taken. */
bool load_pace_take(struct load_pace *pace, uint64_t now_ns, uint64_t *planned_ns);
/* on_due() comes when the next moment does. */
void load_pace_wait(struct load_pace *pace);
/* Moments that have come by NOW_NS and nobody took. */
uint64_t load_pace_backlog(const struct load_pace *pace, uint64_t now_ns);

#endif
