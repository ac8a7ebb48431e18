/* base/metrics_text.h - a registry as text for a scraper: Prometheus' format 0.0.4, or OpenMetrics 1.0. */
#ifndef BASE_METRICS_TEXT_H
#define BASE_METRICS_TEXT_H

#include "base/buf.h"
#include "base/metric.h"

struct metrics;

enum { METRICS_TEXT_BYTES_MAX = 32 * 1024 * 1024 };

enum metrics_format {
    METRICS_PROMETHEUS,
    METRICS_OPENMETRICS,
};

/* Any thread; some milliseconds for 10,000 series, so not a loop's. OUT->failed: it does not fit. */
void metrics_render(struct metrics *metrics, enum metrics_format format, struct buf *out);

/* For collectors: a family, then its samples. Names are constants; a counter's ends in "_total". One
 * collector tells a family, once. */
void metrics_out_family(struct metrics_out *out, enum metric_kind kind, const char *name,
                        const char *help);
/* LABELS are names and values in turn, closed by NULL: metrics_out_sample(out, 3, "lane", "file", NULL). */
void metrics_out_sample(struct metrics_out *out, double value, ...) __attribute__((sentinel));

#endif
