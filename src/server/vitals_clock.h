/* server/vitals_clock.h - the thread of its own that looks at all workers each 10 ms, so that one which is stuck
 * is seen while it is, and that asks where it is by a signal. */
#ifndef SERVER_VITALS_CLOCK_H
#define SERVER_VITALS_CLOCK_H

#include <pthread.h>

#include "base/buf.h"
#include "net/listener.h"

struct err;
struct lend;
struct loop;
struct vitals_clock;
struct vitals_worker;

enum { VITALS_LOOK_MS = 10 };

struct vitals_target {
    pthread_t             thread;
    struct loop          *loop;
    struct vitals_worker *vitals;
    int                   listening; /* the socket whose queue is this worker's; -1: none */
};

struct vitals_clock_options {
    const struct vitals_target *targets; /* copied */
    unsigned                    count;
    const struct lend          *lend;     /* its lanes */
    unsigned                    every_ms; /* from line to line */
    /* On the thread: a line of JSON, which the callee frees with buf_fini(). */
    void (*on_line)(struct buf *line, void *arg);
    void *arg;
};

int vitals_clock_open(struct vitals_clock **out, const struct vitals_clock_options *options,
                      struct err *err);
/* No signal is sent and no line told once this returns. NULL is fine. */
void vitals_clock_close(struct vitals_clock *clock);

#endif
