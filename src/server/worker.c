#include "server/worker.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lend.h"
#include "bind/lend_metrics.h"
#include "bind/lhttp.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "ev/timer.h"
#include "http/serve.h"
#include "net/listener.h"
#include "server/access_log.h"
#include "server/config.h"
#include "server/crash.h"
#include "server/generation.h"
#include "server/version.h"
#include "server/worker_metrics.h"
#include "vm/sched.h"
#include "vm/stop.h"
#include "vm/task.h"
#include "vm/vm.h"

enum {
    ARENA_CHUNKS_KEPT = 1024, /* 4 MiB at most wait to be used again */
    WATCHES_MAX       = 16,   /* listening sockets polled at once: one's own and late neighbours' */
    OLD_GENERATIONS   = 2,    /* may retire at once; a third ends the oldest */
    BALANCE_FREE      = 8,    /* connections that are never passed on, */
    BALANCE_PERCENT   = 125,  /* and the share of the least loaded worker's beyond them */
    PASS_LATE_MS      = 20,   /* no connection is passed to a worker whose turn lasts longer */
    BURST_CONNECTIONS = 1024, /* at once; when three quarters have gone, their memory goes too, */
    TRIM_MS           = 1000, /* after so long */
    ASK_MS            = 20,   /* an interrupted worker answers the watchdog within */
    LAST_ANSWERS_MS   = 1000, /* from cancelling what is left to cutting connections */
};

struct worker {
    const struct worker_shared *shared;
    unsigned                    id;
    struct thread               thread;

    struct loop        *loop;
    struct sched       *sched;
    struct arena_pool   arenas;
    struct http_server *http;
    struct lhttp       *lhttp;
    struct lend_worker  lend;
    struct env          env; /* what each generation gets a copy of */

    struct worker_metrics      metrics;
    struct lend_worker_metrics lent; /* numbers of what `lend` has */

    struct listener_watch watches[WATCHES_MAX];
    atomic_uint           connections; /* for those who pass connections on */
    unsigned              most;        /* of them at once, since memory was last given back */
    struct timer          trim;

    struct list        generations; /* oldest first */
    struct generation *current;     /* NULL before the first switch */

    bool             draining;
    struct timer     drain_limit;
    struct loop_hook turn;
    struct loop_hook idle;
    struct later     more_idle;

    /* What the watchdog asked for; the signal handler in our own thread answers. */
    atomic_bool asked;
    sem_t       answered;
    char        label[WORKER_LABEL_BYTES];

    _Atomic uint64_t over_slice; /* to be stopped; 0: none was so far */
    _Atomic uint64_t over_ms;
};

/* --- messages: what is asked for from outside ------------------------------------------------------- */

struct order {
    struct message message;
    struct worker *worker;
    void (*run)(struct worker *worker, const struct order *order);
    int         fd;
    unsigned    number;
    struct addr peer;
};

static void deliver_order(struct message *message)
{
    struct order *order = container_of(message, struct order, message);

    order->run(order->worker, order);
    free(order);
}

static void drop_order(struct message *message)
{
    free(container_of(message, struct order, message));
}

static struct order *order_new(struct worker *worker,
                               void (*run)(struct worker *, const struct order *))
{
    struct order *order = calloc(1, sizeof(*order));

    if (!order) {
        log_fatal("out of memory");
        abort();
    }
    order->message = (struct message){ .deliver = deliver_order, .drop = drop_order };
    order->worker  = worker;
    order->run     = run;
    return order;
}

static void send_order(struct worker *worker, void (*run)(struct worker *, const struct order *),
                       int fd, unsigned number)
{
    struct order *order = order_new(worker, run);

    order->fd     = fd;
    order->number = number;
    inbox_post(loop_inbox(worker->loop), &order->message);
}

/* --- reports: what is said to the control thread ---------------------------------------------------- */

struct report {
    struct message              message;
    const struct worker_shared *shared;
    struct worker_report        report;
    char                        text[]; /* report.text */
};

static void deliver_report(struct message *message)
{
    struct report *r = container_of(message, struct report, message);

    r->shared->on_report(&r->report, r->shared->arg);
    free(r);
}

static void drop_report(struct message *message)
{
    free(container_of(message, struct report, message));
}

static void report(struct worker *w, enum worker_report_kind kind, unsigned version,
                   const char *text)
{
    size_t         len = text ? strlen(text) + 1 : 0;
    struct report *r   = malloc(sizeof(*r) + len);

    if (!r) {
        log_fatal("out of memory");
        abort();
    }
    r->message = (struct message){ .deliver = deliver_report, .drop = drop_report };
    r->shared  = w->shared;
    r->report  = (struct worker_report){ .kind = kind, .worker = w->id, .version = version };
    if (text)
        r->report.text = memcpy(r->text, text, len);
    inbox_post(w->shared->control, &r->message);
}

/* --- connections -------------------------------------------------------------------------------------- */

static void publish_connections(struct worker *w)
{
    atomic_store_explicit(&w->connections, http_server_connections(w->http), memory_order_relaxed);
}

static bool burst_is_over(const struct worker *w)
{
    return w->most >= BURST_CONNECTIONS && http_server_connections(w->http) < w->most / 4;
}

/* What was freed lies between what was not, where malloc() keeps it for ever by itself. */
static void on_trim(struct timer *timer)
{
    struct worker *w = container_of(timer, struct worker, trim);

    if (!burst_is_over(w))
        return; /* it has begun anew */
    if (w->current)
        vm_tidy(w->current->vm);
    arena_pool_fini(&w->arenas);
    malloc_trim(0);
    w->most = http_server_connections(w->http);
}

static void watch_bursts(struct worker *w)
{
    unsigned count = http_server_connections(w->http);

    if (count > w->most)
        w->most = count;
    if (burst_is_over(w) && !timer_is_running(&w->trim))
        timer_start(&w->trim, w->loop, TRIM_MS);
}

static void take_connection(struct worker *w, int fd, const struct addr *peer)
{
    http_server_accept(w->http, fd, peer);
    publish_connections(w);
}

static void take_passed(struct worker *w, const struct order *order)
{
    take_connection(w, order->fd, &order->peer);
}

static void drop_passed(struct message *message)
{
    struct order *order = container_of(message, struct order, message);

    close(order->fd);
    free(order);
}

static unsigned load_of(const struct worker *w)
{
    return atomic_load_explicit(&w->connections, memory_order_relaxed);
}

/* Sits in one long turn: what is passed to it would wait there. */
static bool is_late(const struct worker *w, uint64_t now_ns)
{
    uint64_t since = loop_busy_since_ns(w->loop);

    return since && now_ns > since + PASS_LATE_MS * (uint64_t)NS_PER_MS;
}

/* The worker that should have the next connection: ourselves, unless we have far more than another.
 * The kernel's choice by hash is twice the mean at times (CORE, fact 2). */
static struct worker *choose_worker(struct worker *w)
{
    struct worker *least = w;
    uint64_t       now   = loop_now_ns(w->loop);

    if (load_of(w) < BALANCE_FREE || w->draining)
        return w;
    for (unsigned i = 0; i < w->shared->worker_count; i++) {
        struct worker *other = w->shared->workers[i];

        if (load_of(other) < load_of(least) && !is_late(other, now))
            least = other;
    }
    return load_of(w) > BALANCE_FREE + load_of(least) * BALANCE_PERCENT / 100 ? least : w;
}

static void pass_connection(struct worker *to, int fd, const struct addr *peer)
{
    struct order *order = order_new(to, take_passed);

    order->message.drop = drop_passed;
    order->fd           = fd;
    order->peer         = *peer;
    /* Counted at once, so that a burst is not all passed to the same one. */
    atomic_fetch_add_explicit(&to->connections, 1, memory_order_relaxed);
    inbox_post(loop_inbox(to->loop), &order->message);
}

static void on_accept(int fd, const struct addr *peer, void *arg)
{
    struct worker *w  = arg;
    struct worker *to = choose_worker(w);

    if (to == w)
        take_connection(w, fd, peer);
    else
        pass_connection(to, fd, peer);
}

static void on_accept_fault(int number, void *arg)
{
    struct worker *w = arg;

    if (number == EINVAL)
        return; /* another worker has drained the socket that they share */
    log_warn("accepting pauses", "worker=%u reason=%s", w->id, strerror(number));
}

static void dispatch(struct exchange *ex, void *arg)
{
    struct worker *w = arg;

    lhttp_dispatch(ex, w->lhttp);
}

static void on_refused(const struct http_refusal *refusal, void *arg)
{
    struct worker *w = arg;
    char           peer[ADDR_TEXT_BYTES];

    worker_metrics_refused(&w->metrics, refusal->status);
    log_info("request refused", "status=%u reason=%s peer=%s", refusal->status, refusal->reason,
             addr_format(refusal->peer, peer));
}

static struct listener_watch *watch_of(struct worker *w, int fd)
{
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        if (w->watches[i].fd == fd)
            return &w->watches[i];
    return NULL;
}

static void listen_to(struct worker *w, const struct order *order)
{
    struct listener_watch *watch = watch_of(w, -1);

    if (w->draining || watch_of(w, order->fd) || !watch)
        return;
    if (listener_watch_start(watch, order->fd) != 0)
        log_error("cannot poll a listener", "worker=%u reason=%s", w->id, strerror(errno));
}

static void unlisten_to(struct worker *w, const struct order *order)
{
    struct listener_watch *watch = watch_of(w, order->fd);

    if (watch)
        listener_watch_stop(watch);
}

/* --- generations ---------------------------------------------------------------------------------------- */

static struct generation *generation_of(struct list *link)
{
    return container_of(link, struct generation, link);
}

static struct generation *find_generation(struct worker *w, unsigned version)
{
    list_each(link, &w->generations) if (generation_of(link)->version ==
                                         version) return generation_of(link);
    return NULL;
}

static void finish_drain_when_empty(struct worker *w)
{
    if (w->draining && list_is_empty(&w->generations) && http_server_connections(w->http) == 0) {
        timer_stop(&w->drain_limit, w->loop);
        report(w, REPORT_DRAINED, 0, NULL);
    }
}

static void on_generation_loaded(struct generation *g)
{
    report(g->arg, REPORT_LOADED, g->version, NULL);
}

static void on_generation_failed(struct generation *g, const char *why)
{
    report(g->arg, REPORT_FAILED, g->version, why);
}

static void on_generation_closed(struct generation *g)
{
    struct worker *w = g->arg;

    list_remove(&g->link);
    log_debug("generation closed", "worker=%u generation=%u", w->id, g->version);
    finish_drain_when_empty(w);
}

static const struct generation_owner OWNER = {
    .on_loaded = on_generation_loaded,
    .on_failed = on_generation_failed,
    .on_closed = on_generation_closed,
};

static void load(struct worker *w, const struct order *order)
{
    struct generation *g;

    if (w->draining)
        return;
    g = generation_load(&w->env, w->shared->config, order->number, &OWNER, w);
    if (g)
        list_append(&w->generations, &g->link);
    else
        report(w, REPORT_FAILED, order->number, "no memory for a Lua state");
}

static void discard(struct worker *w, const struct order *order)
{
    struct generation *g = find_generation(w, order->number);

    if (g && g != w->current)
        generation_close(g);
}

/* Each retiring generation keeps its heap: a burst of edits must not add up. */
static void end_oldest_retiring(struct worker *w)
{
    unsigned retiring = 0;

    for (struct list *link = w->generations.prev; link != &w->generations; link = link->prev)
        if (generation_of(link)->state == GENERATION_RETIRING && ++retiring > OLD_GENERATIONS)
            generation_close(generation_of(link));
}

static void switch_to(struct worker *w, const struct order *order)
{
    struct generation *g   = find_generation(w, order->number);
    struct generation *old = w->current;

    if (!g || g->state != GENERATION_READY)
        return;
    generation_serve(g);
    w->current = g;
    if (old)
        generation_retire(old, w->shared->config->drain_timeout_ms);
    end_oldest_retiring(w);
}

/* --- draining --------------------------------------------------------------------------------------------- */

static void close_generations(struct worker *w)
{
    w->current = NULL;
    list_each_safe(link, &w->generations) generation_close(generation_of(link));
    finish_drain_when_empty(w);
}

static void on_http_drained(void *arg)
{
    close_generations(arg);
}

/* First what runs is cancelled, which answers 503; a second later connections are cut. */
static void on_drain_limit(struct timer *timer)
{
    struct worker *w = container_of(timer, struct worker, drain_limit);

    if (!list_is_empty(&w->generations) && w->current) {
        log_warn("requests cancelled at the drain timeout", "worker=%u connections=%u", w->id,
                 http_server_connections(w->http));
        close_generations(w);
        timer_start(&w->drain_limit, w->loop, LAST_ANSWERS_MS);
        return;
    }
    report(w, REPORT_DRAINED, 0, NULL);
}

/* CORE, decision 20: what waits in the accept queue was promised an answer by the kernel. Whoever
 * comes later is refused, since nobody would look at him. */
static void drain(struct worker *w, const struct order *order)
{
    w->draining = true; /* from here on nothing is passed to another, who may be done already */
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        if (w->watches[i].fd >= 0)
            listener_watch_drain(&w->watches[i]);
    timer_start(&w->drain_limit, w->loop, w->shared->config->drain_timeout_ms);
    list_each_safe(link, &w->generations) generation_end_events(generation_of(link));
    http_server_drain(w->http);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

static _Thread_local struct worker *this_worker;

static void copy_label(char *to, const char *label)
{
    strncpy(to, label, WORKER_LABEL_BYTES - 1);
    to[WORKER_LABEL_BYTES - 1] = '\0';
}

static void answer(struct worker *w)
{
    struct task *task  = sched_running(w->sched);
    const char  *label = task ? task_label(task) : NULL;

    copy_label(w->label, label ? label : "(none)");
    if (task)
        vm_interrupt_stack(task_vm(task));
    sem_post(&w->answered);
}

/* SIGURG in the worker's thread, from the watchdog. */
static void on_sigurg(int number)
{
    struct worker *w      = this_worker;
    int            before = errno;

    if (!w)
        return;
    if (atomic_exchange(&w->asked, false))
        answer(w);
    stop_slice(w->sched, atomic_load(&w->over_slice), atomic_load(&w->over_ms));
    errno = before;
}

void worker_ask(struct worker *w, char label[WORKER_LABEL_BYTES])
{
    uint64_t        at = clock_mono_ns() + ASK_MS * (uint64_t)NS_PER_MS;
    struct timespec ts = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

    while (sem_trywait(&w->answered) == 0) /* an answer that came too late */
        continue;
    atomic_store(&w->asked, true);
    pthread_kill(w->thread.id, SIGURG);
    if (sem_clockwait(&w->answered, CLOCK_MONOTONIC, &ts) == 0)
        memcpy(label, w->label, WORKER_LABEL_BYTES);
    else
        copy_label(label, "(unknown)");
}

void worker_stop_slice(struct worker *w, uint64_t slice, uint64_t slice_ms)
{
    atomic_store(&w->over_slice, slice);
    atomic_store(&w->over_ms, slice_ms);
    pthread_kill(w->thread.id, SIGURG);
}

static void on_turn(struct loop_hook *hook)
{
    struct worker *w = container_of(hook, struct worker, turn);

    publish_connections(w);
}

static void publish_state(struct worker *w)
{
    struct worker_state state = { .connections = http_server_connections(w->http),
                                  .tasks       = sched_task_count(w->sched),
                                  .generation  = w->current ? w->current->version : 0,
                                  .turn_ns     = clock_mono_ns() - loop_now_ns(w->loop) };

    list_each(link, &w->generations)
    {
        const struct generation *g = generation_of(link);

        state.generations++;
        if (g->state != GENERATION_CLOSED && g->vm) /* else it is the pool's */
            state.lua_bytes += g->vm->heap.used;
    }
    worker_metrics_state(&w->metrics, &state);
    lend_worker_metrics_publish(&w->lent);
}

static void on_idle(struct loop_hook *hook)
{
    struct worker *w = container_of(hook, struct worker, idle);

    publish_connections(w); /* without those that ended in this turn: the next may be far off */
    if (metrics_is_watched(w->metrics.metrics))
        publish_state(w);
    watch_bursts(w);
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

    this_worker = w;
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
        .connections   = (uint32_t)config->connections,
        .pipeline      = (uint32_t)config->pipeline,
    };
}

static int open_http(struct worker *w, struct err *err)
{
    const struct config *config = w->shared->config;
    struct http_limits   limits;
    struct lhttp_options lua = {
        .loop = w->loop, .timeout_ms = config->timeout_ms, .on_finished = on_finished, .arg = w
    };

    w->lhttp = lhttp_new(&lua);
    http_limits_of(config, &limits);
    w->http = http_server_open(&(struct http_server_options){ .loop       = w->loop,
                                                              .arenas     = &w->arenas,
                                                              .limits     = &limits,
                                                              .dispatch   = dispatch,
                                                              .on_refused = on_refused,
                                                              .on_drained = on_http_drained,
                                                              .arg        = w });
    return w->lhttp && w->http ? 0 : err_set(err, ERR_MEMORY, "no memory for a worker");
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

    w->lent = (struct lend_worker_metrics){ .redis  = w->lend.redis,
                                            .client = w->lend.client,
                                            .pg     = w->lend.pg };
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
        rc = open_metrics(w, err);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        listener_watch_init(&w->watches[i], w->loop, on_accept, on_accept_fault, w);
    fill_env(w);
    return 0;
}

/* Once for the process: the handler finds the worker by its thread. */
void worker_take_signals(void)
{
    struct sigaction action = { .sa_handler = on_sigurg, .sa_flags = SA_RESTART };

    sigemptyset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL);
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
    list_init(&w->generations);
    sem_init(&w->answered, 0, 0);
    timer_init(&w->drain_limit, on_drain_limit);
    timer_init(&w->trim, on_trim);
    loop_hook_init(&w->turn, on_turn);
    loop_hook_init(&w->idle, on_idle);
    later_init(&w->more_idle, idle_again);
    snprintf(name, sizeof(name), "worker-%u", id);
    rc = open_worker(w, err);
    if (rc == 0)
        rc = thread_start(&w->thread, name, 0, run, w, err);
    if (rc != 0) {
        http_server_close(w->http);
        lend_worker_close(&w->lend);
        worker_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

static void leave_loop(struct worker *w, const struct order *order)
{
    loop_break(w->loop);
}

/* The thread has ended, so all that was its own is ours. */
static void cut_everything(struct worker *w)
{
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        listener_watch_stop(&w->watches[i]);
    timer_stop(&w->drain_limit, w->loop);
    timer_stop(&w->trim, w->loop);
    http_server_close(w->http);
    w->http = NULL;
    list_each_safe(link, &w->generations) generation_abandon(generation_of(link));
    lend_worker_close(&w->lend);
}

bool worker_stop(struct worker *w, unsigned turn_ms)
{
    send_order(w, leave_loop, -1, 0);
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

void worker_listen(struct worker *w, int fd)
{
    send_order(w, listen_to, fd, 0);
}

void worker_unlisten(struct worker *w, int fd)
{
    send_order(w, unlisten_to, fd, 0);
}

void worker_load(struct worker *w, unsigned version)
{
    send_order(w, load, -1, version);
}

void worker_discard(struct worker *w, unsigned version)
{
    send_order(w, discard, -1, version);
}

void worker_switch(struct worker *w, unsigned version)
{
    send_order(w, switch_to, -1, version);
}

void worker_drain(struct worker *w)
{
    send_order(w, drain, -1, 0);
}

struct loop *worker_loop(const struct worker *w)
{
    return w->loop;
}

struct sched *worker_sched(const struct worker *w)
{
    return w->sched;
}
