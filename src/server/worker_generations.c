#include "server/worker_generations.h"

#include "base/compiler.h"
#include "base/log.h"
#include "http/serve.h"
#include "server/config.h"
#include "server/generation.h"
#include "server/redirect.h"
#include "server/worker_connections.h"
#include "server/worker_order.h"
#include "server/worker_state.h"
#include "vm/vm.h"

enum {
    OLD_GENERATIONS = 2,    /* may retire at once; a third ends the oldest */
    LAST_ANSWERS_MS = 1000, /* from cancelling what is left to cutting connections */
};

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

uint64_t worker_generations_lua_bytes(const struct worker *w)
{
    uint64_t bytes = 0;

    list_each(link, &w->generations)
    {
        const struct generation *g = generation_of(link);

        if (g->state != GENERATION_CLOSED && g->vm) /* else it is the pool's */
            bytes += g->vm->heap.used;
    }
    return bytes;
}

/* Once: the server counts those who have said so. */
static void report_drained(struct worker *w)
{
    timer_stop(&w->drain_limit, w->loop);
    if (!w->drained)
        worker_order_report(w, REPORT_DRAINED, 0, NULL);
    w->drained = true;
}

static void finish_drain_when_empty(struct worker *w)
{
    if (w->draining && list_is_empty(&w->generations) && http_server_connections(w->http) == 0)
        report_drained(w);
}

static void on_generation_loaded(struct generation *g)
{
    worker_order_report(g->arg, REPORT_LOADED, g->version, NULL);
}

static void on_generation_failed(struct generation *g, const char *why)
{
    worker_order_report(g->arg, REPORT_FAILED, g->version, why);
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

void worker_generations_load(struct worker *w, const struct worker_order *order)
{
    struct generation *g;

    if (w->draining)
        return;
    g = generation_load(&w->env, w->shared->config, order->number, &OWNER, w);
    if (g)
        list_append(&w->generations, &g->link);
    else
        worker_order_report(w, REPORT_FAILED, order->number, "no memory for a Lua state");
}

void worker_generations_discard(struct worker *w, const struct worker_order *order)
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

void worker_generations_switch(struct worker *w, const struct worker_order *order)
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

void worker_generations_drained(struct worker *w)
{
    w->current = NULL;
    list_each_safe(link, &w->generations)
        generation_finish(generation_of(link), w->shared->config->drain_timeout_ms);
    finish_drain_when_empty(w);
}

static void cancel_requests(struct worker *w)
{
    unsigned connections = http_server_connections(w->http);

    if (connections)
        log_warn("requests cancelled at the drain timeout", "worker=%u connections=%u", w->id,
                 connections);
    timer_start(&w->drain_limit, w->loop, LAST_ANSWERS_MS);
    close_generations(w);
}

/* First what runs is cancelled, which answers 503; a second later connections are cut. Who is not done
 * with a handshake has nothing to be answered. */
static void on_drain_limit(struct timer *timer)
{
    struct worker *w = container_of(timer, struct worker, drain_limit);

    http_server_cut_handshakes(w->http);
    if (!list_is_empty(&w->generations) && w->current)
        cancel_requests(w);
    else
        report_drained(w);
}

/* CORE, decision 20: what waits in the accept queue was promised an answer by the kernel. Whoever
 * comes later is refused, since nobody would look at him. */
void worker_generations_drain(struct worker *w, const struct worker_order *order)
{
    w->draining = true; /* from here on nothing is passed to another, who may be done already */
    worker_connections_drain(w);
    timer_start(&w->drain_limit, w->loop, w->shared->config->drain_timeout_ms);
    list_each_safe(link, &w->generations) generation_end_events(generation_of(link));
    http_server_drain(w->http);
    if (w->redirect)
        http_server_drain(redirect_server(w->redirect));
}

void worker_generations_init(struct worker *w)
{
    list_init(&w->generations);
    timer_init(&w->drain_limit, on_drain_limit);
}

void worker_generations_abandon(struct worker *w)
{
    timer_stop(&w->drain_limit, w->loop);
    list_each_safe(link, &w->generations) generation_abandon(generation_of(link));
}
