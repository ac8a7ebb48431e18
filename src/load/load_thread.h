/* load/load_thread.h - one thread of a load: a loop and its share of the connections. */
#ifndef LOAD_LOAD_THREAD_H
#define LOAD_LOAD_THREAD_H

#include <stdint.h>

struct err;
struct load_shared;
struct load_thread;

/* THREAD is zeroed memory of the caller's, SHARED outlives it. QUOTA: requests it may send. ON_OVER
 * comes on the new thread, as its last act. */
int load_thread_start(struct load_thread *thread, struct load_shared *shared, unsigned index,
                      uint64_t quota, void (*on_over)(struct load_thread *), void *arg,
                      struct err *err);
/* Waits for its end; to be told to stop is the caller's business (shared->stopped). */
void load_thread_join(struct load_thread *thread);

#endif
