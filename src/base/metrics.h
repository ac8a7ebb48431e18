/* base/metrics.h - what a process counts: counters, gauges and histograms with labels, to be shown as
 * Prometheus' text or OpenMetrics (base/metrics_text.h).
 *
 * A registry serves all threads. Who counts often has a shard of its own, one thread's: counters and
 * histograms lie there as cells that only this thread writes, without a lock or a locked
 * instruction; a scrape adds up the shards. A gauge is one cell for the process, the last one to set
 * it wins. What was registered stays as long as the registry: names and label sets are bounded. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/metric.h"

struct err;
struct metric;
struct metrics;
struct metrics_shard;

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

/* The shard's thread: the cells of METRIC for these VALUES (metric_label_count() of them). NULL: there
 * are METRICS_SERIES_MAX already, or no memory; that is counted. */
metric_cell *metrics_series(struct metrics_shard *shard, struct metric *metric,
                            const struct str *values) MUST_CHECK;

/* Histograms: the shard's thread. */
void metric_observe(const struct metric *metric, metric_cell *cells, double value);

/* Gauges: any thread; metric_set() besides. */
void metric_change(metric_cell *cell, double by);

/* --- who counts by himself ------------------------------------------------------------------------ */

/* Any thread. Borrowed until metrics_uncollect() returns. */
void metrics_collect(struct metrics *metrics, struct metrics_collector *collector);
void metrics_uncollect(struct metrics *metrics, struct metrics_collector *collector);

/* --- whether anybody looks ------------------------------------------------------------------------- */

/* Somebody means to scrape: from now on what costs time on the way of a request is counted too. */
void metrics_watch(struct metrics *metrics);
bool metrics_is_watched(const struct metrics *metrics);

#endif
