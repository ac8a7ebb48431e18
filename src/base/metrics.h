/* base/metrics.h - what a process counts: counters, gauges and histograms with labels, to be shown as
 * Prometheus' text or OpenMetrics (base/metrics_text.h).
 *
 * A registry serves all threads. Who counts often has a shard of its own, one thread's: counters and
 * histograms lie there as cells that only this thread writes, without a lock or a locked
 * instruction; a scrape adds up the shards. A gauge is one cell for the process, the last one to set
 * it wins. What was registered stays as long as the registry: names and label sets are bounded. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/str.h"

struct err;
struct metric;
struct metrics;
struct metrics_out;
struct metrics_shard;

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

int  metrics_open(struct metrics **out, struct err *err);
void metrics_close(struct metrics *metrics); /* with all shards; NULL is fine */

/* One for each thread that counts; lives as long as the registry. NULL: no memory. Any thread. */
struct metrics_shard *metrics_shard_open(struct metrics *metrics) MUST_CHECK;

/* Any thread; what is told is copied. The same again gives the same metric. NULL: ERR_INVALID,
 * ERR_EXISTS when the name stands for something else, ERR_TOO_LARGE, ERR_MEMORY. */
struct metric *metrics_define(struct metrics *metrics, const struct metric_spec *spec,
                              struct err *err) MUST_CHECK;

enum metric_kind metric_kind(const struct metric *metric);
unsigned         metric_label_count(const struct metric *metric);
struct str       metric_label(const struct metric *metric, unsigned index);

/* --- counting ------------------------------------------------------------------------------------ */

/* Where one series is counted: one cell, or a histogram's. Keep it: it stays valid. */
typedef _Atomic double metric_cell;

/* The shard's thread: the cells of METRIC for these VALUES (metric_label_count() of them). NULL: there
 * are METRICS_SERIES_MAX already, or no memory; that is counted. */
metric_cell *metrics_series(struct metrics_shard *shard, struct metric *metric,
                            const struct str *values) MUST_CHECK;

/* Counters: the shard's thread. N is not negative. */
static inline void metric_add(metric_cell *cell, double n)
{
    double now = atomic_load_explicit(cell, memory_order_relaxed);

    atomic_store_explicit(cell, now + n, memory_order_relaxed);
}

/* Histograms: the shard's thread. */
void metric_observe(const struct metric *metric, metric_cell *cells, double value);

/* Gauges: any thread. */
static inline void metric_set(metric_cell *cell, double value)
{
    atomic_store_explicit(cell, value, memory_order_relaxed);
}
void metric_change(metric_cell *cell, double by);

/* --- who counts by himself ------------------------------------------------------------------------ */

/* COLLECT tells its numbers by metrics_out_... (base/metrics_text.h) at each scrape: on any thread, one
 * at a time, so it reads atomics or takes locks of its own, and does not touch the registry. */
struct metrics_collector {
    struct list link;
    void (*collect)(struct metrics_out *out, void *arg);
    void *arg;
};

/* Any thread. Borrowed until metrics_uncollect() returns. */
void metrics_collect(struct metrics *metrics, struct metrics_collector *collector);
void metrics_uncollect(struct metrics *metrics, struct metrics_collector *collector);

/* --- whether anybody looks ------------------------------------------------------------------------- */

/* Somebody means to scrape: from now on what costs time on the way of a request is counted too. */
void metrics_watch(struct metrics *metrics);
bool metrics_is_watched(const struct metrics *metrics);

#endif
