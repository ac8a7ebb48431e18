/* data/pg_seat.h - the seats of a pool: opened within the budget, chosen for a statement, asked to stop
 * what runs there, and closed. */
#ifndef DATA_PG_SEAT_H
#define DATA_PG_SEAT_H

#include "data/pg_impl.h"

uint64_t pg_pool_now(const struct pg_pool *pool); /* as loop_now_ns() */
bool     pg_pool_is_older(const struct pg_pool *pool, uint64_t since_ns, uint64_t ms);
void     pg_pool_tick(struct pg_pool *pool); /* the pool looks at its seats soon */

/* Another connection, unless the budget or the pace forbids it. */
bool pg_seat_open(struct pg_pool *pool);
void pg_seat_close(struct pg_seat *seat);
/* In the next round of the turn. */
void pg_seat_doom(struct pg_seat *seat);
void pg_seats_close(struct pg_pool *pool); /* all of them; no calls but ours are left */

void pg_seat_set(struct pg_seat *seat, enum seat_state state);
/* At rest: what it was used for is over, and it is shared again if nothing was left open. */
void pg_seat_settle(struct pg_seat *seat);

bool pg_seat_is_shared(const struct pg_seat *seat);
/* It works, but for nobody: all who asked have gone. */
bool     pg_seat_is_left_alone(const struct pg_seat *seat);
unsigned pg_seats_shared(const struct pg_pool *pool);
/* For the statement SQL of its own; NULL: none has room. */
struct pg_seat *pg_seats_best(const struct pg_pool *pool, const struct pg_seat *but,
                              struct str sql);

/* The server is asked to stop what runs there. False: there is no way to. */
bool pg_seat_cancel(struct pg_seat *seat);

#endif
