/* base/metrics_process.h - what the kernel says of this process, under the names that Prometheus' own
 * clients use: memory, CPU time, descriptors, start. */
#ifndef BASE_METRICS_PROCESS_H
#define BASE_METRICS_PROCESS_H

#include "base/metric.h"

struct metrics;

/* COLLECTOR is the caller's memory; metrics_uncollect() it, or close the registry first. */
void metrics_process_open(struct metrics *metrics, struct metrics_collector *collector);

#endif
