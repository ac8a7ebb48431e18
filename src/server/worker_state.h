/* server/worker_state.h - what a worker is made of, for the files worker*.c alone. All of it is the
 * worker's own thread's, but for what is atomic. */
#ifndef SERVER_WORKER_STATE_H
#define SERVER_WORKER_STATE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "bind/env.h"
#include "bind/lend.h"
#include "bind/lend_metrics.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "ev/timer.h"
#include "net/listener.h"
#include "server/sockets.h"
#include "server/worker_shared.h"
#include "server/worker_metrics.h"

struct vitals_worker;

enum {
    WORKER_WATCHES = 16
}; /* listening sockets of a door polled at once: one's own and late neighbours' */

/* Connections that were refused, in the log. */
struct refusals {
    uint64_t told_ns; /* when one of them was; 0: never */
    unsigned untold;  /* since then */
};

struct worker {
    const struct worker_shared *shared;
    unsigned                    id;
    struct thread               thread;

    struct loop        *loop;
    struct sched       *sched;
    struct arena_pool   arenas;
    struct http_server *http;
    struct lhttp       *lhttp;
    struct tls_server  *tls_server; /* what new connections begin with; NULL: plain HTTP */
    struct redirect    *redirect;   /* NULL: there is no such port */
    struct lend_worker  lend;
    struct env          env; /* what each generation gets a copy of */

    struct worker_metrics      metrics;
    struct lend_worker_metrics lent; /* numbers of what `lend` has */

    struct vitals_worker *vitals; /* NULL: nobody looks */

    struct listener_watch watches[DOORS][WORKER_WATCHES];
    atomic_uint           connections; /* for those who pass connections on */
    unsigned              most;        /* of http_server_load(), since memory was last given back */
    struct timer          trim;

    struct refusals refused_headers; /* of the PROXY protocol */
    struct refusals refused_handshakes;
    struct refusals refused_frames;
    bool            told_of_hello; /* TLS came to a plain port */

    struct list        generations; /* oldest first */
    struct generation *current;     /* NULL before the first switch */

    bool             draining;
    bool             drained; /* and has said so */
    struct timer     drain_limit;
    struct loop_hook turn;
    struct loop_hook idle;
    struct later     more_idle;

    /* What the watchdog asked for; the signal handler in our own thread answers. */
    atomic_bool asked;
    sem_t       answered;
    char        label[WORKER_LABEL_BYTES];

    _Atomic uint64_t over_slice; /* to be stopped; 0: none was so far */
    _Atomic uint64_t over_ms;
};

#endif
