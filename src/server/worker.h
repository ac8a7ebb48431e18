/* server/worker.h - one thread that serves: a loop, a scheduler, connections, and the generations
 * of the app. Workers share nothing but what the process lends them.
 *
 * What is asked of a worker is a message to its loop; what it has to say comes back as a report in
 * the control inbox. Calls are for the control thread unless they say otherwise. */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "ev/inbox.h"

struct chunks;
struct config;
struct err;
struct lend;
struct log;
struct loop;
struct sched;
struct worker;

enum worker_report_kind {
    REPORT_LOADED,  /* `version` stands ready beside the current one */
    REPORT_FAILED,  /* it does not load: `text` has file, line and traceback */
    REPORT_DRAINED, /* no connection and no generation is left */
};

struct worker_report {
    enum worker_report_kind kind;
    unsigned                worker;
    unsigned                version;
    const char             *text; /* FAILED only; borrowed for the call */
};

/* What the process lends to each of its workers; outlives them. */
struct worker_shared {
    const struct config *config;
    struct log          *log;
    const struct lend   *lend;
    struct chunks       *chunks;
    struct inbox        *control; /* where reports go */
    struct worker      **workers; /* all of them: connections are passed on */
    unsigned             worker_count;
    /* On the control thread. */
    void (*on_report)(const struct worker_report *report, void *arg);
    void *arg;
};

/* Installs the handler by which worker_ask() reaches a thread; once for the process. */
void worker_take_signals(void);

int worker_start(struct worker **out, const struct worker_shared *shared, unsigned id,
                 struct err *err);
/* Ends the thread with the turn it is in, cuts what is open and closes its VMs. False: the turn has
 * not ended within TURN_MS, and the worker is as it was. */
bool worker_stop(struct worker *worker, unsigned turn_ms);
/* After worker_stop() and pool_close(): until then jobs of the pool come home to its loop. */
void worker_free(struct worker *worker);

/* --- messages ---------------------------------------------------------------------------------- */

/* Polls FD from now on: its own slot's socket, or that of a late neighbour. Any thread. */
void worker_listen(struct worker *worker, int fd);
void worker_unlisten(struct worker *worker, int fd);

void worker_load(struct worker *worker, unsigned version);
void worker_discard(struct worker *worker, unsigned version);
void worker_switch(struct worker *worker, unsigned version);

/* Accepts what waits in its queue, then nothing more; ends connections as they become idle. What
 * is left at the drain timeout is cancelled. REPORT_DRAINED follows. */
void worker_drain(struct worker *worker);

/* --- for the watchdog, any thread ---------------------------------------------------------------- */

struct loop  *worker_loop(const struct worker *worker);
struct sched *worker_sched(const struct worker *worker);

enum { WORKER_LABEL_BYTES = 256 };

/* Interrupts the worker: LABEL gets that of the task that runs now ("GET /users/:id"; "(none)" where
 * no Lua runs, "(unknown)" where the thread does not even take a signal), and the worker logs its
 * Lua stack as soon as a hook can. A label is its generation's, so only the worker itself may look
 * at it. */
void worker_ask(struct worker *worker, char label[WORKER_LABEL_BYTES]);

/* Interrupts the worker: slice number SLICE of its scheduler, SLICE_MS old, is to end where it is
 * (vm/stop.h), unless it has ended by itself. To be repeated. */
void worker_stop_slice(struct worker *worker, uint64_t slice, uint64_t slice_ms);

#endif
