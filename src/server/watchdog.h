/* server/watchdog.h - a thread that looks at every worker's heartbeat and says who is late.
 *
 * It knows loops and schedulers only by their counters, takes no lock and stops nothing: what is
 * to be done about a late worker is its listener's business. A look costs a few loads for each
 * worker. */
#ifndef SERVER_WATCHDOG_H
#define SERVER_WATCHDOG_H

#include <stdint.h>

struct err;
struct loop;
struct sched;
struct watchdog;

enum {
    WATCHDOG_BUSY_MS = 5,   /* from look to look while any loop runs */
    WATCHDOG_IDLE_MS = 10,  /* while all sleep */
    WATCHDOG_LATE_MS = 20,  /* a turn that lasts longer makes its worker late */
    WATCHDOG_GAP_MS  = 50,  /* looks farther apart: the machine stood still, not the workers */
    WATCHDOG_STOP_MS = 100, /* what has not been stopped by then is told of */
};

/* Borrowed; both outlive the watchdog. */
struct watched {
    struct loop  *loop;
    struct sched *sched; /* tells the slices of one turn apart; NULL: a turn is one slice */
};

/* All run on the watchdog's thread, so they post messages or set flags. Each may be NULL. SLOT is
 * the place in the array of struct watched. */
struct watchdog_ops {
    /* No turn has ended for WATCHDOG_LATE_MS: a neighbour may take its listener over. */
    void (*late)(unsigned slot, void *arg);
    /* The turn that was late has ended, after BUSY_MS. Each late() is followed by one back(),
     * except when the watchdog is closed before. */
    void (*back)(unsigned slot, uint64_t busy_ms, void *arg);
    /* One slice has lasted for SLICE_MS so far, more than the limit; once for each slice. */
    void (*slow)(unsigned slot, uint64_t slice_ms, void *arg);
    /* Slice number SLICE (sched_slices()) has lasted for SLICE_MS, and is to be stopped; at every look
     * until it has ended. */
    void (*over)(unsigned slot, uint64_t slice, uint64_t slice_ms, void *arg);
    /* WATCHDOG_STOP_MS after the first over() it still lasts; once for each slice. */
    void (*unstopped)(unsigned slot, uint64_t slice_ms, void *arg);
};

/* How long a slice may last; 0: for ever. */
struct watchdog_limits {
    uint64_t warn_ms; /* then comes slow() */
    uint64_t stop_ms; /* then comes over() */
};

/* Copies WATCHED and LIMITS. OPS is borrowed. */
int watchdog_open(struct watchdog **out, const struct watched *watched, unsigned count,
                  const struct watchdog_limits *limits, const struct watchdog_ops *ops, void *arg,
                  struct err *err);
/* NULL is fine. No callback runs once this returns. */
void watchdog_close(struct watchdog *watchdog);

#endif
