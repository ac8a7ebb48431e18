#include "server/worker_connections.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "http/serve.h"
#include "server/generation.h"
#include "server/redirect.h"
#include "server/worker_order.h"
#include "server/worker_state.h"
#include "vm/vm.h"

enum {
    BALANCE_FREE    = 8,    /* connections that are never passed on, */
    BALANCE_PERCENT = 125,  /* and the share of the least loaded worker's beyond them */
    PASS_LATE_MS    = 20,   /* no connection is passed to a worker whose turn lasts longer */
    BURST_LOAD      = 1024, /* connections and streams at once; when three quarters have gone, */
    TRIM_MS         = 1000, /* their memory goes too, after so long */
};

void worker_connections_publish(struct worker *w)
{
    atomic_store_explicit(&w->connections, http_server_connections(w->http), memory_order_relaxed);
}

static bool burst_is_over(const struct worker *w)
{
    return w->most >= BURST_LOAD && http_server_load(w->http) < w->most / 4;
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
    w->most = http_server_load(w->http);
}

void worker_connections_watch(struct worker *w)
{
    unsigned load = http_server_load(w->http);

    if (load > w->most)
        w->most = load;
    if (burst_is_over(w) && !timer_is_running(&w->trim))
        timer_start(&w->trim, w->loop, TRIM_MS);
}

static void take_connection(struct worker *w, int fd, const struct addr *peer)
{
    http_server_accept(w->http, fd, peer);
    worker_connections_publish(w);
}

static void take_passed(struct worker *w, const struct worker_order *order)
{
    take_connection(w, order->fd, &order->peer);
}

static void drop_passed(struct message *message)
{
    struct worker_order *order = container_of(message, struct worker_order, message);

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
    struct worker_order *order = worker_order_new(to, take_passed);

    order->message.drop = drop_passed;
    order->fd           = fd;
    order->peer         = *peer;
    /* Counted at once, so that a burst is not all passed to the same one. */
    atomic_fetch_add_explicit(&to->connections, 1, memory_order_relaxed);
    worker_order_post(order);
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

/* Answered at once and without Lua: not worth to be passed on. */
static void on_accept_redirect(int fd, const struct addr *peer, void *arg)
{
    struct worker *w = arg;

    http_server_accept(redirect_server(w->redirect), fd, peer);
}

static void on_accept_fault(int number, void *arg)
{
    struct worker *w = arg;

    if (number == EINVAL)
        return; /* another worker has drained the socket that they share */
    log_warn("accepting pauses", "worker=%u reason=%s", w->id, strerror(number));
}

static struct listener_watch *watch_of(struct worker *w, unsigned door, int fd)
{
    for (unsigned i = 0; i < WORKER_WATCHES; i++)
        if (w->watches[door][i].fd == fd)
            return &w->watches[door][i];
    return NULL;
}

/* Before its app serves, a worker takes nobody: neighbours that load theirs look late to the watchdog,
 * and what comes to their sockets then is to wait in the queue. */
void worker_connections_listen(struct worker *w, const struct worker_order *order)
{
    struct listener_watch *watch = watch_of(w, order->number, -1);

    if (!w->current || w->draining || watch_of(w, order->number, order->fd) || !watch)
        return;
    if (listener_watch_start(watch, order->fd) != 0)
        log_error("cannot poll a listener", "worker=%u reason=%s", w->id, strerror(errno));
}

void worker_connections_unlisten(struct worker *w, const struct worker_order *order)
{
    struct listener_watch *watch = watch_of(w, order->number, order->fd);

    if (watch)
        listener_watch_stop(watch);
}

void worker_connections_drain(struct worker *w)
{
    for (unsigned door = 0; door < DOORS; door++)
        for (unsigned i = 0; i < WORKER_WATCHES; i++)
            if (w->watches[door][i].fd >= 0)
                listener_watch_drain(&w->watches[door][i]);
}

void worker_connections_init(struct worker *w)
{
    static const accept_fn ON_ACCEPT[DOORS] = {
        [DOOR_APP] = on_accept, [DOOR_REDIRECT] = on_accept_redirect
    };

    timer_init(&w->trim, on_trim);
    for (unsigned door = 0; door < DOORS; door++)
        for (unsigned i = 0; i < WORKER_WATCHES; i++)
            listener_watch_init(&w->watches[door][i], w->loop, ON_ACCEPT[door], on_accept_fault, w);
}

void worker_connections_stop(struct worker *w)
{
    for (unsigned door = 0; door < DOORS; door++)
        for (unsigned i = 0; i < WORKER_WATCHES; i++)
            listener_watch_stop(&w->watches[door][i]);
    timer_stop(&w->trim, w->loop);
}
