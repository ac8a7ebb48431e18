/* bind/lend_metrics.h - the numbers of what a process and its workers lend to VMs, for metrics. */
#ifndef BIND_LEND_METRICS_H
#define BIND_LEND_METRICS_H

#include "base/metrics.h"

struct bus;
struct dicts;
struct err;
struct http_client;
struct lane;
struct lws_worker;
struct pg_worker;
struct redis;

enum {
    LEND_LANES   = 3,
    LEND_NUMBERS = 32, /* room for those of a worker */
};

/* What all threads may ask: collected at a scrape. */
struct lend_metrics {
    struct metrics_collector process, lent;
    struct lane             *lanes[LEND_LANES];
    struct dicts            *dicts;
    struct bus              *bus;
};

/* The sources are set, and outlive the registry's last scrape. */
void lend_metrics_open(struct lend_metrics *m, struct metrics *metrics);

/* What only the worker may look at: it publishes copies. */
struct lend_worker_metrics {
    const struct redis       *redis; /* sources may be NULL */
    const struct http_client *client;
    const struct pg_worker   *pg;
    const struct lws_worker  *sockets;
    metric_cell              *cells[LEND_NUMBERS];
};

int  lend_worker_metrics_open(struct lend_worker_metrics *m, struct metrics *metrics,
                              struct metrics_shard *shard, unsigned worker, struct err *err);
void lend_worker_metrics_publish(struct lend_worker_metrics *m);

#endif
