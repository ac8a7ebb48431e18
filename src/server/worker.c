#include "server/worker.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lhttp.h"
#include "http/serve.h"
#include "server/access_log.h"
#include "server/config.h"
#include "server/crash.h"
#include "server/generation.h"
#include "server/redirect.h"
#include "server/version.h"
#include "server/vitals_worker.h"
#include "server/worker_connections.h"
#include "server/worker_generations.h"
#include "server/worker_order.h"
#include "server/worker_refused.h"
#include "server/worker_state.h"
#include "server/worker_tls.h"
#include "server/worker_watched.h"
#include "vm/sched.h"
#include "vm/vm.h"

enum { ARENA_CHUNKS_KEPT = 1024 }; /* 4 MiB at most wait to be used again */

static void dispatch(struct exchange *ex, void *arg)
{
    struct worker *w = arg;

    lhttp_dispatch(ex, w->lhttp);
}

static void on_drained(void *arg)
{
    worker_generations_drained(arg);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

static void on_turn(struct loop_hook *hook)
{
    struct worker *w = container_of(hook, struct worker, turn);

    worker_connections_publish(w);
}

static void publish_state(struct worker *w)
{
    struct worker_state state = { .connections = http_server_connections(w->http),
                                  .tasks       = sched_task_count(w->sched),
                                  .generation  = w->current ? w->current->version : 0,
                                  .lua_bytes   = worker_generations_lua_bytes(w),
                                  .turn_ns     = clock_mono_ns() - loop_now_ns(w->loop) };

    list_each(link, &w->generations)
    {
        state.generations++;
    }
    worker_metrics_state(&w->metrics, &state);
    lend_worker_metrics_publish(&w->lent);
}

static void on_idle(struct loop_hook *hook)
{
    struct worker *w = container_of(hook, struct worker, idle);

    worker_connections_publish(
        w); /* without those that ended in this turn: the next may be far off */
    if (metrics_is_watched(w->metrics.metrics))
        publish_state(w);
    worker_connections_watch(w);
    if (w->current && vm_idle_step(w->current->vm))
        loop_later(w->loop, &w->more_idle);
}

/* Its presence keeps the loop from sleeping, so that on_idle() comes again. */
static void idle_again(struct later *later)
{
}

static void run(void *arg)
{
    struct worker *w = arg;

    worker_watched_here(w);
    loop_on_turn(w->loop, &w->turn);
    loop_on_idle(w->loop, &w->idle);
    log_attach(w->shared->log);
    crash_blame(w->sched);
    loop_run(w->loop);
    loop_hook_remove(&w->turn);
    loop_hook_remove(&w->idle);
    later_cancel(&w->more_idle);
    crash_blame(NULL);
    log_detach();
}

static void on_finished(const struct lhttp_finished *finished, void *arg)
{
    struct worker *w = arg;

    if (w->shared->config->access_log)
        access_log_write(finished->ex, lhttp_finished_id(finished));
    worker_metrics_request(&w->metrics, finished);
    if (w->vitals)
        vitals_worker_request(w->vitals, finished);
}

static void on_handshake(bool is_resumed, void *arg)
{
    struct worker *w = arg;

    worker_metrics_handshake(&w->metrics, is_resumed ? "resumed" : "full");
}

static void http_limits_of(const struct config *config, struct http_limits *limits)
{
    *limits = (struct http_limits){
        .line_bytes    = (uint32_t)config->line_limit,
        .head_bytes    = (uint32_t)config->head_limit,
        .head_fields   = (uint32_t)config->head_fields,
        .body_bytes    = config->body_limit,
        .head_ms       = config->head_timeout_ms,
        .body_ms       = config->body_timeout_ms,
        .write_ms      = config->write_timeout_ms,
        .keep_alive_ms = config->keep_alive_timeout_ms,
        .half_close_ms = config->half_close_ms,
        .handshake_ms  = config->handshake_timeout_ms,
        .connections   = (uint32_t)config->connections,
        .streams       = config->http2 ? (uint32_t)config->http2_streams : 0,
        .pipeline      = (uint32_t)config->pipeline,
    };
}

static int open_http(struct worker *w, struct err *err)
{
    const struct config   *config  = w->shared->config;
    const struct networks *proxies = &config->proxy_protocol;
    struct http_limits     limits;
    struct lhttp_options   lua = {
          .loop = w->loop, .timeout_ms = config->timeout_ms, .on_finished = on_finished, .arg = w
    };
    struct http_server_options options = { .loop     = w->loop,
                                           .arenas   = &w->arenas,
                                           .limits   = &limits,
                                           .proxies  = networks_is_empty(proxies) ? NULL : proxies,
                                           .dispatch = dispatch,
                                           .on_refused   = worker_refused,
                                           .on_handshake = on_handshake,
                                           .on_drained   = on_drained,
                                           .arg          = w };
    bool                       is_complete;

    http_limits_of(config, &limits);
    w->lhttp    = lhttp_new(&lua);
    w->http     = http_server_open(&options);
    is_complete = w->lhttp && w->http;
    if (is_complete && config->redirect_http != CONFIG_NO_PORT) {
        w->redirect = redirect_open(&options, w->shared->port);
        is_complete = w->redirect != NULL;
    }
    return is_complete ? 0 : err_set(err, ERR_MEMORY, "no memory for a worker");
}

static void fill_env(struct worker *w)
{
    const struct worker_shared *shared = w->shared;

    w->env = (struct env){ .loop          = w->loop,
                           .sched         = w->sched,
                           .arenas        = &w->arenas,
                           .chunks        = shared->chunks,
                           .log           = shared->log,
                           .http          = w->lhttp,
                           .request_id    = lhttp_request_id,
                           .app_root      = shared->config->app_root,
                           .version       = SRV_VERSION,
                           .dev           = shared->config->dev,
                           .worker_id     = w->id,
                           .worker_count  = shared->worker_count,
                           .draining      = &w->draining,
                           .settings      = shared->config->settings,
                           .setting_count = shared->config->setting_count };
    lend_to(&w->env, shared->lend, &w->lend);
}

static int open_metrics(struct worker *w, struct err *err)
{
    struct metrics *metrics = w->shared->lend->metrics;
    int rc = worker_metrics_open(&w->metrics, metrics, w->lend.metrics_shard, w->id, err);

    w->lent = (struct lend_worker_metrics){ .redis   = w->lend.redis,
                                            .client  = w->lend.client,
                                            .pg      = w->lend.pg,
                                            .sockets = w->lend.sockets };
    if (rc == 0)
        rc = lend_worker_metrics_open(&w->lent, metrics, w->lend.metrics_shard, w->id, err);
    return rc;
}

static int open_worker(struct worker *w, struct err *err)
{
    int rc = loop_open(&w->loop, err);

    if (rc == 0)
        rc = sched_open(&w->sched, w->loop, w->id, err);
    if (rc == 0)
        rc = open_http(w, err);
    if (rc == 0)
        rc = lend_worker_open(&w->lend, w->shared->lend, w->loop, err);
    if (rc == 0)
        rc = worker_tls_open(w, err);
    if (rc == 0)
        rc = open_metrics(w, err);
    if (rc != 0)
        return rc;
    worker_connections_init(w);
    fill_env(w);
    return 0;
}

int worker_start(struct worker **out, const struct worker_shared *shared, unsigned id,
                 struct err *err)
{
    struct worker *w = calloc(1, sizeof(*w));
    char           name[16];
    int            rc;

    if (!w)
        return err_set(err, ERR_MEMORY, "no memory for a worker");
    w->shared = shared;
    w->id     = id;
    arena_pool_init(&w->arenas, ARENA_CHUNKS_KEPT);
    sem_init(&w->answered, 0, 0);
    worker_generations_init(w);
    loop_hook_init(&w->turn, on_turn);
    loop_hook_init(&w->idle, on_idle);
    later_init(&w->more_idle, idle_again);
    snprintf(name, sizeof(name), "worker-%u", id);
    rc = open_worker(w, err);
    if (rc == 0)
        rc = thread_start(&w->thread, name, 0, run, w, err);
    if (rc != 0) {
        redirect_close(w->redirect);
        http_server_close(w->http);
        worker_tls_close(w);
        lend_worker_close(&w->lend);
        worker_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

static void leave_loop(struct worker *w, const struct worker_order *order)
{
    loop_break(w->loop);
}

/* The thread has ended, so all that was its own is ours. */
static void cut_everything(struct worker *w)
{
    worker_connections_stop(w);
    redirect_close(w->redirect);
    http_server_close(w->http);
    w->redirect = NULL;
    w->http     = NULL;
    worker_tls_close(w);
    worker_generations_abandon(w);
    lend_worker_close(&w->lend);
}

bool worker_stop(struct worker *w, unsigned turn_ms)
{
    worker_order_send(w, leave_loop, -1, 0);
    if (!thread_join_within(&w->thread, turn_ms))
        return false;
    cut_everything(w);
    return true;
}

void worker_free(struct worker *w)
{
    lhttp_free(w->lhttp);
    sched_close(w->sched);
    loop_close(w->loop); /* drops what the pool has sent */
    arena_pool_fini(&w->arenas);
    worker_metrics_close(&w->metrics);
    sem_destroy(&w->answered);
    free(w);
}

void worker_listen(struct worker *w, enum door door, int fd)
{
    worker_order_send(w, worker_connections_listen, fd, door);
}

void worker_unlisten(struct worker *w, enum door door, int fd)
{
    worker_order_send(w, worker_connections_unlisten, fd, door);
}

void worker_load(struct worker *w, unsigned version)
{
    worker_order_send(w, worker_generations_load, -1, version);
}

void worker_discard(struct worker *w, unsigned version)
{
    worker_order_send(w, worker_generations_discard, -1, version);
}

void worker_switch(struct worker *w, unsigned version)
{
    worker_order_send(w, worker_generations_switch, -1, version);
}

void worker_drain(struct worker *w)
{
    worker_order_send(w, worker_generations_drain, -1, 0);
}

struct loop *worker_loop(const struct worker *w)
{
    return w->loop;
}

pthread_t worker_thread(const struct worker *w)
{
    return w->thread.id;
}

struct sched *worker_sched(const struct worker *w)
{
    return w->sched;
}
