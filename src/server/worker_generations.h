/* server/worker_generations.h - the versions of the app that one worker has: which loads, which
 * serves, which may finish, and how all of them end in a drain. */
#ifndef SERVER_WORKER_GENERATIONS_H
#define SERVER_WORKER_GENERATIONS_H

#include <stdint.h>

struct worker_order;
struct worker;

void worker_generations_init(struct worker *worker);
/* The thread has ended: gives up what they still do. */
void worker_generations_abandon(struct worker *worker);

/* Orders; order->number is the version. */
void worker_generations_load(struct worker *worker, const struct worker_order *order);
void worker_generations_discard(struct worker *worker, const struct worker_order *order);
void worker_generations_switch(struct worker *worker, const struct worker_order *order);

/* Order: accepts nothing more, and reports when the last connection and generation have ended. */
void worker_generations_drain(struct worker *worker, const struct worker_order *order);
/* Of all their VMs, but for those that the pool closes. */
uint64_t worker_generations_lua_bytes(const struct worker *worker);
/* The last connection of a drain has ended. */
void worker_generations_drained(struct worker *worker);

#endif
