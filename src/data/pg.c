#include "data/pg.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/pg_budget.h"
#include "data/pg_lib.h"

struct pg {
    pthread_mutex_t   lock; /* for `lib` */
    struct pg_lib     lib;
    struct pg_budgets budgets;
};

struct pg_worker {
    struct pg   *pg;
    struct loop *loop;
    struct dns  *dns;
    struct list  pools;
};

int pg_open(struct pg **out, struct err *err)
{
    struct pg *pg = calloc(1, sizeof(*pg));

    if (!pg)
        return err_set(err, ERR_MEMORY, "no memory");
    pthread_mutex_init(&pg->lock, NULL);
    pg_budgets_init(&pg->budgets);
    *out = pg;
    return 0;
}

void pg_close(struct pg *pg)
{
    if (!pg)
        return;
    pg_budgets_fini(&pg->budgets);
    pthread_mutex_destroy(&pg->lock);
    free(pg);
}

int pg_worker_open(struct pg_worker **out, struct pg *pg, struct loop *loop, struct dns *dns,
                   struct err *err)
{
    struct pg_worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return err_set(err, ERR_MEMORY, "no memory");
    *worker = (struct pg_worker){ .pg = pg, .loop = loop, .dns = dns };
    list_init(&worker->pools);
    *out = worker;
    return 0;
}

static void free_pool(struct pg_pool *pool)
{
    list_remove(&pool->link);
    pg_pool_fini(pool);
    free(pool);
}

void pg_worker_close(struct pg_worker *worker)
{
    if (!worker)
        return;
    list_each_safe(node, &worker->pools) free_pool(container_of(node, struct pg_pool, link));
    free(worker);
}

static int load(struct pg *pg, struct err *err)
{
    int rc = 0;

    pthread_mutex_lock(&pg->lock);
    if (!pg->lib.handle)
        rc = pg_lib_load(&pg->lib, err);
    pthread_mutex_unlock(&pg->lock);
    return rc;
}

static bool is_for(const struct pg_pool *pool, const struct pg_options *options)
{
    return strcmp(pool->options.url, options->url) == 0 &&
           pool->options.connections == options->connections &&
           pool->options.waiting == options->waiting &&
           pool->options.timeout_ms == options->timeout_ms;
}

static struct pg_pool *find_pool(struct pg_worker *worker, const struct pg_options *options)
{
    list_each(node, &worker->pools)
    {
        struct pg_pool *pool = container_of(node, struct pg_pool, link);

        if (is_for(pool, options))
            return pool;
    }
    return NULL;
}

static int make_pool(struct pg_pool **out, struct pg_worker *worker,
                     const struct pg_options *options, struct err *err)
{
    struct pg_pool *pool = calloc(1, sizeof(*pool));
    int             rc;

    if (!pool)
        return err_set(err, ERR_MEMORY, "no memory for a pool of connections");
    rc = pg_pool_init(pool, &worker->pg->lib, &worker->pg->budgets, options, worker->dns,
                      worker->loop, err);
    if (rc != 0) {
        free(pool);
        return rc;
    }
    pool->on_unused = free_pool;
    list_append(&worker->pools, &pool->link);
    *out = pool;
    return 0;
}

int pg_pool_open(struct pg_pool **out, struct pg_worker *worker, const struct pg_options *options,
                 struct err *err)
{
    int rc = load(worker->pg, err);

    if (rc != 0)
        return rc;
    *out = find_pool(worker, options);
    if (!*out)
        rc = make_pool(out, worker, options, err);
    if (rc == 0)
        pg_pool_use(*out);
    return rc;
}

void pg_pool_close(struct pg_pool *pool)
{
    pg_pool_unuse(pool);
}

void pg_worker_stats(const struct pg_worker *worker, struct pg_stats *out)
{
    *out = (struct pg_stats){ .open = 0 };
    list_each(node, &worker->pools) pg_pool_stats(container_of(node, struct pg_pool, link), out);
}
