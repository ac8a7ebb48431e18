#include "bind/lend.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/temps.h"
#include "bind/env.h"
#include "bind/lws_worker.h"
#include "bind/sources.h"
#include "data/bus.h"
#include "data/dict.h"
#include "data/pg.h"
#include "data/redis.h"
#include "data/redis_bus.h"
#include "data/sqlite.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/child.h"
#include "ev/pool.h"
#include "client/client.h"
#include "net/dns.h"
#include "net/ports.h"
#include "net/tls.h"
#include "net/udp_ports.h"

enum {
    FILE_THREADS   = 4,
    SQLITE_THREADS = 8,
    QUEUE_MAX      = 1024, /* jobs that may wait in a lane */
};

static int open_lanes(struct lend *lend, struct err *err)
{
    unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    int      rc   = pool_open(&lend->pool, err);

    if (rc == 0)
        rc = lane_open(&lend->lane_file, lend->pool, "file", FILE_THREADS, QUEUE_MAX, err);
    if (rc == 0)
        rc = lane_open(&lend->lane_cpu, lend->pool, "cpu", cpus, QUEUE_MAX, err);
    if (rc == 0)
        rc = lane_open(&lend->lane_sqlite, lend->pool, "sqlite", SQLITE_THREADS, QUEUE_MAX, err);
    return rc;
}

static void count_lent(struct lend *lend)
{
    lend->numbers = (struct lend_metrics){
        .lanes = { lend->lane_file, lend->lane_cpu, lend->lane_sqlite },
        .dicts = lend->dicts,
        .bus   = lend->bus,
    };
    lend_metrics_open(&lend->numbers, lend->metrics);
}

int lend_open(struct lend *lend, struct err *err)
{
    int rc = metrics_open(&lend->metrics, err);

    if (rc == 0)
        rc = open_lanes(lend, err);
    if (rc == 0)
        rc = temps_open(&lend->temps, err);
    if (rc == 0)
        rc = sqlite_open(&lend->sqlite, lend->lane_sqlite, err);
    if (rc == 0)
        rc = dicts_open(&lend->dicts, err);
    if (rc == 0)
        rc = bus_open(&lend->bus, err);
    if (rc == 0)
        rc = pg_open(&lend->pg, err);
    if (rc == 0)
        rc = redis_hearing_open(&lend->redis_hearing, lend->bus, err);
    if (rc == 0)
        rc = ports_open(&lend->ports, err);
    if (rc == 0)
        rc = udp_ports_open(&lend->udp_ports, err);
    if (rc == 0)
        rc = sources_open(&lend->sources, err);
    if (rc == 0)
        count_lent(lend);
    return rc;
}

void lend_close(struct lend *lend)
{
    pool_close(lend->pool);
    temps_close(lend->temps);
    sqlite_close(lend->sqlite);
    ports_close(lend->ports);
    udp_ports_close(lend->udp_ports);
    sources_close(lend->sources);
    redis_hearing_close(lend->redis_hearing);
    bus_close(lend->bus);
    dicts_close(lend->dicts);
    pg_close(lend->pg);
    metrics_close(lend->metrics);
}

int lend_worker_open(struct lend_worker *own, const struct lend *lend, struct loop *loop,
                     struct err *err)
{
    int rc;

    own->loop          = loop;
    own->metrics_shard = metrics_shard_open(lend->metrics);
    if (!own->metrics_shard)
        return err_set(err, ERR_MEMORY, "no memory for a worker's metrics");
    rc = bus_port_open(&own->bus_port, lend->bus, loop, err);
    if (rc == 0)
        rc = dns_open(&own->dns, loop,
                      &(struct dns_options){ .servers = getenv("SRV_DNS_SERVERS") }, err);
    if (rc == 0)
        rc = tls_open(&own->tls, loop, err);
    if (rc == 0)
        rc = http_client_open(&own->client, loop, own->dns, own->tls, NULL, err);
    if (rc == 0)
        rc = lws_worker_open(&own->sockets, loop, own->bus_port, err);
    if (rc == 0)
        rc = redis_open(&own->redis, loop, own->dns, own->tls, err);
    if (rc == 0)
        rc = pg_worker_open(&own->pg, lend->pg, loop, own->dns, err);
    if (rc == 0)
        rc = children_open(&own->children, loop, err);
    return rc;
}

void lend_worker_close(struct lend_worker *own)
{
    children_close(own->children);
    lws_worker_close(own->sockets);
    bus_port_close(own->bus_port);
    if (own->loop)
        inbox_close(loop_inbox(own->loop)); /* what is in it names the bus and dictionaries */
    pg_worker_close(own->pg);
    redis_close(own->redis);
    http_client_close(own->client);
    tls_close(own->tls);
    dns_close(own->dns);
}

void lend_to(struct env *env, const struct lend *lend, const struct lend_worker *own)
{
    env->pool          = lend->pool;
    env->lane_file     = lend->lane_file;
    env->lane_cpu      = lend->lane_cpu;
    env->lane_sqlite   = lend->lane_sqlite;
    env->temps         = lend->temps;
    env->sqlite        = lend->sqlite;
    env->dicts         = lend->dicts;
    env->bus           = lend->bus;
    env->redis_hearing = lend->redis_hearing;
    env->bus_port      = own->bus_port;
    env->metrics       = lend->metrics;
    env->metrics_shard = own->metrics_shard;
    env->tls           = own->tls;
    env->client        = own->client;
    env->sockets       = own->sockets;
    env->dns           = own->dns;
    env->ports         = lend->ports;
    env->udp_ports     = lend->udp_ports;
    env->sources       = lend->sources;
    env->redis         = own->redis;
    env->pg            = own->pg;
    env->children      = own->children;
}
