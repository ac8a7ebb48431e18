/* server/worker_metrics.h - what a worker tells of itself and of its requests, from when somebody means to
 * scrape on (metrics_is_watched()): until then nothing of it costs anything. Its thread's alone. */
#ifndef SERVER_WORKER_METRICS_H
#define SERVER_WORKER_METRICS_H

#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/metrics.h"

struct err;
struct lhttp_finished;

/* The worker's present state, before it sleeps. */
struct worker_state {
    unsigned connections;
    unsigned tasks;       /* that wait */
    unsigned generations; /* VMs, of which one serves */
    unsigned generation;  /* that one */
    uint64_t lua_bytes;   /* of all VMs */
    uint64_t turn_ns;     /* how long the turn took */
};

struct worker_metrics {
    struct metrics       *metrics;
    struct metrics_shard *shard;
    struct metric        *requests, *durations, *refused, *handshakes, *turns;
    metric_cell          *turn;
    metric_cell          *connections, *tasks, *generations, *generation, *lua_bytes;
    struct map            routes; /* struct route_counts by method and pattern */
};

int  worker_metrics_open(struct worker_metrics *m, struct metrics *metrics,
                         struct metrics_shard *shard, unsigned worker, struct err *err);
void worker_metrics_close(struct worker_metrics *m); /* zeroed memory is fine */

void worker_metrics_request(struct worker_metrics *m, const struct lhttp_finished *finished);
/* Answered by the wire itself: no request that the app could see. 0: closed without an answer. */
void worker_metrics_refused(struct worker_metrics *m, unsigned status);
/* Of TLS; RESULT: "full", "resumed", "failed". */
void worker_metrics_handshake(struct worker_metrics *m, const char *result);
void worker_metrics_state(struct worker_metrics *m, const struct worker_state *state);

#endif
