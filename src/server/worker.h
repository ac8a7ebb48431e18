/* server/worker.h - one thread that serves: a loop, a scheduler, connections, and the generations
 * of the app. Workers share nothing but what the process lends them.
 *
 * What is asked of a worker is a message to its loop; what it has to say comes back as a report in
 * the control inbox. Calls are for the control thread unless they say otherwise. */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/sockets.h"
#include "server/worker_shared.h"

struct err;
struct loop;
struct sched;
struct worker;

int worker_start(struct worker **out, const struct worker_shared *shared, unsigned id,
                 struct err *err);
/* Ends the thread with the turn it is in, cuts what is open and closes its VMs. False: the turn has
 * not ended within TURN_MS, and the worker is as it was. */
bool worker_stop(struct worker *worker, unsigned turn_ms);
/* After worker_stop() and pool_close(): until then jobs of the pool come home to its loop. */
void worker_free(struct worker *worker);

/* --- messages ---------------------------------------------------------------------------------- */

/* Polls FD from now on: its own slot's socket, or that of a late neighbour. Any thread. */
void worker_listen(struct worker *worker, enum door door, int fd);
void worker_unlisten(struct worker *worker, enum door door, int fd);

void worker_load(struct worker *worker, unsigned version);
void worker_discard(struct worker *worker, unsigned version);
void worker_switch(struct worker *worker, unsigned version);

/* Accepts what waits in its queue, then nothing more; ends connections as they become idle. What
 * is left at the drain timeout is cancelled. REPORT_DRAINED follows. */
void worker_drain(struct worker *worker);

/* --- for the watchdog, any thread ---------------------------------------------------------------- */

struct loop  *worker_loop(const struct worker *worker);
struct sched *worker_sched(const struct worker *worker);
pthread_t     worker_thread(const struct worker *worker); /* until worker_stop() */

#endif
