#include "bind/lend.h"

#include <unistd.h>

#include "base/err.h"
#include "bind/env.h"
#include "data/sqlite.h"
#include "ev/pool.h"
#include "http/client.h"
#include "net/dns.h"

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

int lend_open(struct lend *lend, struct err *err)
{
    int rc = open_lanes(lend, err);

    if (rc == 0)
        rc = sqlite_open(&lend->sqlite, lend->lane_sqlite, err);
    return rc;
}

void lend_close(struct lend *lend)
{
    pool_close(lend->pool);
    sqlite_close(lend->sqlite);
}

int lend_worker_open(struct lend_worker *own, const struct lend *lend, struct loop *loop,
                     struct err *err)
{
    int rc;

    own->loop = loop;
    rc        = dns_open(&own->dns, loop, NULL, err);
    if (rc == 0)
        rc = http_client_open(&own->client, loop, own->dns, NULL, err);
    return rc;
}

void lend_worker_close(struct lend_worker *own)
{
    http_client_close(own->client);
    dns_close(own->dns);
}

void lend_to(struct env *env, const struct lend *lend, const struct lend_worker *own)
{
    env->pool        = lend->pool;
    env->lane_file   = lend->lane_file;
    env->lane_cpu    = lend->lane_cpu;
    env->lane_sqlite = lend->lane_sqlite;
    env->sqlite      = lend->sqlite;
    env->client      = own->client;
}
