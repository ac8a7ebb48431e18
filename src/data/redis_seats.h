/* data/redis_seats.h - connections for one caller at a time: commands that wait at the server, and
 * transactions that watch. A few of them, with a fair queue before. For data/redis*.c. */
#ifndef DATA_REDIS_SEATS_H
#define DATA_REDIS_SEATS_H

#include <stdint.h>

#include "base/list.h"
#include "ev/timer.h"

struct fault;
struct redis_call;
struct redis_place;
struct redis_seat;

struct redis_seats {
    const struct redis_place *place;
    unsigned                  seats_max;
    unsigned                  waiting_max;
    uint64_t     timeout_ms; /* for a seat to become free, and for calls with a limit */
    struct list  idle;       /* latest first */
    struct list  taken;
    unsigned     count;
    struct list  waiting; /* calls */
    unsigned     waiting_count;
    struct timer overdue;
};

void redis_seats_init(struct redis_seats *seats, const struct redis_place *place);
/* All calls end with FAULT, from the loop's turn; those who keep a seat must have let it go. */
void redis_seats_fini(struct redis_seats *seats, const struct fault *fault);

/* 0, or -1 with CALL->fault set: nothing was started. */
int redis_seats_start(struct redis_seats *seats, struct redis_call *call);
/* CALL is one of ours; its drop() may come at once. */
void redis_seats_cancel(struct redis_seats *seats, struct redis_call *call);
/* Whoever keeps SEAT has no more use for it, and left it in whichever state: it is closed. */
void redis_seats_give_up(struct redis_seats *seats, struct redis_seat *seat);

unsigned redis_seats_pending(const struct redis_seats *seats);
unsigned redis_seats_ready(const struct redis_seats *seats);

#endif
