#include "bind/lend_metrics.h"

#include <stdio.h>

#include "base/err.h"
#include "base/metrics_process.h"
#include "base/metrics_text.h"
#include "bind/lws_worker.h"
#include "data/bus.h"
#include "data/dict.h"
#include "data/pg.h"
#include "data/redis.h"
#include "ev/pool.h"
#include "client/client.h"

/* --- the process's ---------------------------------------------------------------------------------- */

/* One family for all lanes, since a family is told once. */
static void tell_lanes(struct metrics_out *out, const struct lane_stats *lanes, unsigned count)
{
    metrics_out_family(out, METRIC_GAUGE, "srv_pool_queued", "Jobs that wait for a thread.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, lanes[i].queued, "lane", lanes[i].name, NULL);
    metrics_out_family(out, METRIC_GAUGE, "srv_pool_running", "Jobs on a thread.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, lanes[i].running, "lane", lanes[i].name, NULL);
    metrics_out_family(out, METRIC_COUNTER, "srv_pool_jobs_total", "Jobs that are done.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)lanes[i].done, "lane", lanes[i].name, NULL);
    metrics_out_family(out, METRIC_COUNTER, "srv_pool_refused_total",
                       "Jobs refused because too many waited.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)lanes[i].refused, "lane", lanes[i].name, NULL);
}

static void tell_pool(struct metrics_out *out, const struct lend_metrics *m)
{
    struct lane_stats lanes[LEND_LANES];

    for (unsigned i = 0; i < LEND_LANES; i++)
        lane_stats(m->lanes[i], &lanes[i]);
    tell_lanes(out, lanes, LEND_LANES);
}

static void tell_dicts(struct metrics_out *out, const struct dict_stats *dicts, unsigned count)
{
    metrics_out_family(out, METRIC_GAUGE, "srv_shared_bytes", "What a dictionary takes.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)dicts[i].used, "name", dicts[i].name, NULL);
    metrics_out_family(out, METRIC_GAUGE, "srv_shared_bytes_max", "What it may take.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)dicts[i].bytes, "name", dicts[i].name, NULL);
    metrics_out_family(out, METRIC_GAUGE, "srv_shared_entries", "Keys, some of them expired.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)dicts[i].entries, "name", dicts[i].name, NULL);
    metrics_out_family(out, METRIC_COUNTER, "srv_shared_evicted_total",
                       "Keys that went to make room.");
    for (unsigned i = 0; i < count; i++)
        metrics_out_sample(out, (double)dicts[i].evicted, "name", dicts[i].name, NULL);
}

static void tell_shared(struct metrics_out *out, const struct lend_metrics *m)
{
    static _Thread_local struct dict_stats dicts[DICT_COUNT_MAX]; /* 12 KiB: too much for a stack */

    tell_dicts(out, dicts, dicts_stats(m->dicts, dicts, DICT_COUNT_MAX));
}

static void tell_number(struct metrics_out *out, enum metric_kind kind, const char *name,
                        const char *help, double value)
{
    metrics_out_family(out, kind, name, help);
    metrics_out_sample(out, value, NULL);
}

static void tell_bus(struct metrics_out *out, const struct lend_metrics *m)
{
    struct bus_stats bus;

    bus_stats(m->bus, &bus);
    tell_number(out, METRIC_COUNTER, "srv_bus_published_total", "Messages of srv.bus.",
                (double)bus.published);
    tell_number(out, METRIC_COUNTER, "srv_bus_delivered_total", "The same, for each worker.",
                (double)bus.delivered);
    tell_number(out, METRIC_COUNTER, "srv_bus_lost_total", "Those that a worker could not take.",
                (double)bus.lost);
    tell_number(out, METRIC_GAUGE, "srv_bus_topics", "Topics that somebody has subscribed to.",
                bus.topics);
}

static void collect(struct metrics_out *out, void *arg)
{
    const struct lend_metrics *m = arg;

    tell_pool(out, m);
    tell_shared(out, m);
    tell_bus(out, m);
}

void lend_metrics_open(struct lend_metrics *m, struct metrics *metrics)
{
    metrics_process_open(metrics, &m->process);
    m->lent = (struct metrics_collector){ .collect = collect, .arg = m };
    metrics_collect(metrics, &m->lent);
}

/* --- a worker's --------------------------------------------------------------------------------------- */

enum number {
    REDIS_CONNECTIONS,
    REDIS_PENDING,
    REDIS_CALLS,
    REDIS_LOST,
    CLIENT_OPEN,
    CLIENT_IDLE,
    CLIENT_WAITING,
    CLIENT_OPENED,
    CLIENT_REUSED,
    PG_OPEN,
    PG_IDLE,
    PG_LEASED,
    PG_WAITING,
    PG_IN_FLIGHT,
    PG_STATEMENTS,
    PG_ORPHANED,
    PG_CANCELLED,
    PG_CONNECTS,
    PG_CONNECTS_FAILED,
    SOCKETS_OPEN,
    SOCKETS_RECEIVED,
    SOCKETS_SENT,
    SOCKETS_DROPPED,
    NUMBER_COUNT,
};

_Static_assert((int)NUMBER_COUNT <= (int)LEND_NUMBERS, "the cells have no room");

static const struct {
    enum metric_kind kind;
    const char      *name, *help;
} NUMBERS[NUMBER_COUNT] = {
    [REDIS_CONNECTIONS] = { METRIC_GAUGE, "srv_redis_connections", "Connections to Redis." },
    [REDIS_PENDING]     = { METRIC_GAUGE, "srv_redis_pending", "Calls of Redis under way." },
    [REDIS_CALLS]       = { METRIC_COUNTER, "srv_redis_calls_total", "Calls of Redis." },
    [REDIS_LOST]  = { METRIC_COUNTER, "srv_redis_lost_total", "Connections to Redis that broke." },
    [CLIENT_OPEN] = { METRIC_GAUGE, "srv_http_client_connections",
                      "Connections of srv.http, idle ones too." },
    [CLIENT_IDLE] = { METRIC_GAUGE, "srv_http_client_idle", "Those that nobody uses." },
    [CLIENT_WAITING] = { METRIC_GAUGE, "srv_http_client_waiting",
                         "Calls of srv.http that wait for a connection." },
    [CLIENT_OPENED]  = { METRIC_COUNTER, "srv_http_client_opened_total",
                         "Connections that srv.http has opened." },
    [CLIENT_REUSED]  = { METRIC_COUNTER, "srv_http_client_reused_total",
                         "Calls that found one open." },
    [PG_OPEN]        = { METRIC_GAUGE, "srv_postgres_connections",
                         "Connections to PostgreSQL, idle ones too." },
    [PG_IDLE]        = { METRIC_GAUGE, "srv_postgres_idle", "Those that nobody uses." },
    [PG_LEASED]      = { METRIC_GAUGE, "srv_postgres_leased",
                         "Those that belong to one task: transactions, COPY, LISTEN." },
    [PG_WAITING]    = { METRIC_GAUGE, "srv_postgres_waiting", "Calls that wait for a connection." },
    [PG_IN_FLIGHT]  = { METRIC_GAUGE, "srv_postgres_in_flight", "Statements under way." },
    [PG_STATEMENTS] = { METRIC_COUNTER, "srv_postgres_statements_total", "Statements sent." },
    [PG_ORPHANED]   = { METRIC_COUNTER, "srv_postgres_orphaned_total",
                        "Statements whose result nobody wanted any more." },
    [PG_CANCELLED]  = { METRIC_COUNTER, "srv_postgres_cancelled_total",
                        "Statements that the server was told to stop." },
    [PG_CONNECTS]   = { METRIC_COUNTER, "srv_postgres_connects_total",
                        "Connections to PostgreSQL that were begun." },
    [PG_CONNECTS_FAILED] = { METRIC_COUNTER, "srv_postgres_connects_failed_total",
                             "Those that failed." },
    [SOCKETS_OPEN]       = { METRIC_GAUGE, "srv_websockets", "WebSockets that are open." },
    [SOCKETS_RECEIVED]   = { METRIC_COUNTER, "srv_websocket_received_total",
                             "Messages that came by WebSocket." },
    [SOCKETS_SENT] = { METRIC_COUNTER, "srv_websocket_sent_total", "Messages sent by WebSocket." },
    [SOCKETS_DROPPED] = { METRIC_COUNTER, "srv_websocket_dropped_total",
                          "Messages of topics that a full buffer had no room for." },
};

/* A gauge is shown for each worker; the counters of all are summed up. */
static metric_cell *define(struct metrics *metrics, struct metrics_shard *shard, enum number number,
                           struct str worker, struct err *err)
{
    static const struct str WORKER   = STR_INIT("worker");
    bool                    is_gauge = NUMBERS[number].kind == METRIC_GAUGE;
    struct metric_spec      spec     = { .kind        = NUMBERS[number].kind,
                                         .name        = str_of(NUMBERS[number].name),
                                         .help        = str_of(NUMBERS[number].help),
                                         .labels      = &WORKER,
                                         .label_count = is_gauge ? 1 : 0 };
    struct metric          *metric   = metrics_define(metrics, &spec, err);

    return metric ? metrics_series(shard, metric, &worker) : NULL;
}

int lend_worker_metrics_open(struct lend_worker_metrics *m, struct metrics *metrics,
                             struct metrics_shard *shard, unsigned worker, struct err *err)
{
    char       text[16];
    struct str id = str_make(text, (size_t)snprintf(text, sizeof(text), "%u", worker));

    for (int i = 0; i < NUMBER_COUNT; i++) {
        m->cells[i] = define(metrics, shard, (enum number)i, id, err);
        if (!m->cells[i])
            return err_set(err, ERR_MEMORY, "no memory for a worker's metrics");
    }
    return 0;
}

static void publish_redis(struct lend_worker_metrics *m)
{
    struct redis_stats redis;

    redis_stats(m->redis, &redis);
    metric_set(m->cells[REDIS_CONNECTIONS], redis.connections);
    metric_set(m->cells[REDIS_PENDING], redis.pending);
    metric_set(m->cells[REDIS_CALLS], (double)redis.calls);
    metric_set(m->cells[REDIS_LOST], (double)redis.lost);
}

static void publish_client(struct lend_worker_metrics *m)
{
    struct http_client_stats client = http_client_stats(m->client);

    metric_set(m->cells[CLIENT_OPEN], client.open);
    metric_set(m->cells[CLIENT_IDLE], client.idle);
    metric_set(m->cells[CLIENT_WAITING], client.waiting);
    metric_set(m->cells[CLIENT_OPENED], (double)client.opened);
    metric_set(m->cells[CLIENT_REUSED], (double)client.reused);
}

static void publish_pg(struct lend_worker_metrics *m)
{
    struct pg_stats pg;

    pg_worker_stats(m->pg, &pg);
    metric_set(m->cells[PG_OPEN], pg.open);
    metric_set(m->cells[PG_IDLE], pg.idle);
    metric_set(m->cells[PG_LEASED], pg.leased);
    metric_set(m->cells[PG_WAITING], pg.waiting);
    metric_set(m->cells[PG_IN_FLIGHT], pg.in_flight);
    metric_set(m->cells[PG_STATEMENTS], (double)pg.statements);
    metric_set(m->cells[PG_ORPHANED], (double)pg.orphaned);
    metric_set(m->cells[PG_CANCELLED], (double)pg.cancelled);
    metric_set(m->cells[PG_CONNECTS], (double)pg.connects);
    metric_set(m->cells[PG_CONNECTS_FAILED], (double)pg.connects_failed);
}

static void publish_sockets(struct lend_worker_metrics *m)
{
    struct lws_counts sockets = lws_worker_counts(m->sockets);

    metric_set(m->cells[SOCKETS_OPEN], (double)sockets.open);
    metric_set(m->cells[SOCKETS_RECEIVED], (double)sockets.received);
    metric_set(m->cells[SOCKETS_SENT], (double)sockets.sent);
    metric_set(m->cells[SOCKETS_DROPPED], (double)sockets.dropped);
}

void lend_worker_metrics_publish(struct lend_worker_metrics *m)
{
    if (m->redis)
        publish_redis(m);
    if (m->client)
        publish_client(m);
    if (m->pg)
        publish_pg(m);
    if (m->sockets)
        publish_sockets(m);
}
