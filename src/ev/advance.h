/* ev/advance.h - moves a held clock (ev/loop.h) on to a time, from one timer to the next.
 *
 * Before each step what is ready has its say: the loop is quiet, and the owner's threads have
 * nothing left. So the timers of a stretch of time fire in the order in which they are due, those
 * that are started on the way included, and each sees the time it was due at. What comes from
 * other machines is not waited for. Belongs to the loop's thread. */
#ifndef EV_ADVANCE_H
#define EV_ADVANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "ev/loop.h"

struct advance {
    struct loop     *loop;
    struct loop_hook idle;
    struct later     again; /* has the loop look once more instead of sleeping */
    uint64_t         to_ns;
    bool             looked; /* at the sockets, since the clock was moved */
    bool             running;

    bool (*is_busy)(void *arg); /* other threads still work for this loop; NULL: none do */
    void (*on_done)(void *arg); /* the time is reached, and all is quiet */
    void *arg;
};

void advance_init(struct advance *advance, struct loop *loop, bool (*is_busy)(void *arg),
                  void (*on_done)(void *arg), void     *arg);
/* The clock is held. One at a time. */
void advance_start(struct advance *advance, uint64_t by_ns);
void advance_stop(struct advance *advance); /* idempotent; on_done() does not run */

#endif
