/* server/worker_watched.h - the worker's side of the watchdog: a signal in its own thread, which says
 * what runs there or ends it. Calls are for any thread unless they say otherwise. */
#ifndef SERVER_WORKER_WATCHED_H
#define SERVER_WORKER_WATCHED_H

#include <stdint.h>

#include "server/worker_shared.h"

/* Installs the signal's handler; once for the process. */
void worker_watched_take_signals(void);

/* The worker's thread: signals to it are for WORKER from now on. */
void worker_watched_here(struct worker *worker);

/* Interrupts the worker: LABEL gets that of the task that runs now ("GET /users/:id"; "(none)" where
 * no Lua runs, "(unknown)" where the thread does not even take a signal), and the worker logs its
 * Lua stack as soon as a hook can. A label is its generation's, so only the worker itself may look
 * at it. */
void worker_watched_ask(struct worker *worker, char label[WORKER_LABEL_BYTES]);

/* Interrupts the worker: slice number SLICE of its scheduler, SLICE_MS old, is to end where it is
 * (vm/stop.h), unless it has ended by itself. To be repeated. */
void worker_watched_stop_slice(struct worker *worker, uint64_t slice, uint64_t slice_ms);

#endif
