/* base/metric.h - one metric: how it is described, and the cells that it is counted in. base/metrics.h
 * is where they are registered. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/str.h"

struct metrics_out;

enum {
    METRICS_FAMILIES_MAX   = 1000,
    METRICS_SERIES_MAX     = 10000, /* of all families; more are refused, and counted */
    METRIC_NAME_BYTES_MAX  = 128,
    METRIC_HELP_BYTES_MAX  = 1024,
    METRIC_LABELS_MAX      = 8,
    METRIC_VALUE_BYTES_MAX = 128, /* of a label; longer ones are cut there */
    METRIC_BUCKETS_MAX     = 64,
    METRICS_CELLS_MAX      = 256 * 1024, /* of a shard: 2 MiB at most */
};

enum metric_kind {
    METRIC_COUNTER, /* only grows */
    METRIC_GAUGE,
    METRIC_HISTOGRAM, /* how many were at most so large; and their sum */
};

struct metric_spec {
    enum metric_kind  kind;
    struct str        name;   /* [a-zA-Z_:][a-zA-Z0-9_:]* */
    struct str        help;   /* for people: one sentence */
    const struct str *labels; /* [a-zA-Z_][a-zA-Z0-9_]*, not "le", none beginning with "__" */
    unsigned          label_count;
    const double     *bounds; /* of a histogram: rising, finite; +Inf is added */
    unsigned          bound_count;
};

/* --- counting ------------------------------------------------------------------------------------ */

/* Where one series is counted: one cell, or a histogram's. Keep it: it stays valid. */
typedef _Atomic double metric_cell;

/* Counters: the shard's thread. N is not negative. */
static inline void metric_add(metric_cell *cell, double n)
{
    double now = atomic_load_explicit(cell, memory_order_relaxed);

    atomic_store_explicit(cell, now + n, memory_order_relaxed);
}

/* Gauges: any thread. Counters that somebody else adds up: the shard's thread, the total so far. */
static inline void metric_set(metric_cell *cell, double value)
{
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

/* --- who counts by himself ------------------------------------------------------------------------ */

/* COLLECT tells its numbers by metrics_out_... (base/metrics_text.h) at each scrape: on any thread, one
 * at a time, so it reads atomics or takes locks of its own, and does not touch the registry. */
struct metrics_collector {
    struct list link;
    void (*collect)(struct metrics_out *out, void *arg);
    void *arg;
};

#endif
