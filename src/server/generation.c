#include "server/generation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lhttp.h"
#include "bind/lsite.h"
#include "bind/lws_worker.h"
#include "bind/script.h"
#include "ws/ws.h"
#include "server/config.h"
#include "vm/task.h"
#include "vm/vm.h"

static void enter(struct generation *g, enum generation_state state)
{
    timer_stop(&g->limit, g->env.loop);
    g->state = state;
}

/* --- closing ------------------------------------------------------------------------------------- */

static void close_on_pool(struct job *job)
{
    struct generation *g = container_of(job, struct generation, job);

    vm_close(g->vm);
    g->vm = NULL;
}

static void closed(struct job *job)
{
    struct generation *g = container_of(job, struct generation, job);

    g->owner->on_closed(g);
    free(g);
}

/* The worker itself has gone: nobody is left to be told. */
static void dropped(struct job *job)
{
    struct generation *g = container_of(job, struct generation, job);

    vm_close(g->vm);
    list_remove(&g->link);
    free(g);
}

/* No task is left: the Lua state goes to the pool. */
static void part(struct later *later)
{
    struct generation *g = container_of(later, struct generation, close);

    if (g->state != GENERATION_CLOSING)
        return;
    if (g->vm->task_count) /* those that came since, or have overstayed */
        vm_abandon_tasks(g->vm);
    enter(g, GENERATION_CLOSED);
    later_cancel(&g->idle);
    vm_detach(g->vm);
    g->job = (struct job){ .run = close_on_pool, .done = closed, .drop = dropped };
    if (lane_submit(g->env.lane_cpu, &g->job, loop_inbox(g->env.loop)) != 0) {
        vm_close(g->vm);
        closed(&g->job);
    }
}

static void on_vm_drained(struct vm *vm)
{
    struct generation *g = container_of(vm->env, struct generation, env);

    if (g->state == GENERATION_CLOSING)
        loop_later(g->env.loop, &g->close);
}

void generation_close(struct generation *g)
{
    if (g->state >= GENERATION_CLOSING)
        return;
    if (g->state == GENERATION_CURRENT)
        lhttp_switch(g->env.http, NULL);
    if (g->site && g->state != GENERATION_RETIRING)
        lsite_retire(g->site);
    enter(g, GENERATION_CLOSING);
    lboot_call_off(&g->boot);
    timer_start(&g->limit, g->env.loop, GENERATION_CLOSE_MS);
    if (g->site)
        lsite_cancel_calls(g->site, "shutdown");
    vm_cancel_tasks(g->vm, "shutdown");
    if (g->vm->task_count == 0)
        loop_later(g->env.loop, &g->close);
}

/* --- loading ------------------------------------------------------------------------------------- */

static void fail(struct generation *g, const char *why)
{
    g->owner->on_failed(g, why);
    generation_close(g);
}

static void on_booted(struct lsite *site, const char *why, void *arg)
{
    struct generation *g = arg;

    if (!site) {
        fail(g, why);
        return;
    }
    g->site = site;
    enter(g, GENERATION_READY);
    g->owner->on_loaded(g);
}

static unsigned load_limit_ms(const struct generation *g)
{
    return g->version == 1 ? GENERATION_FIRST_MS : GENERATION_LOAD_MS;
}

static void fail_late(struct generation *g)
{
    char why[64];

    snprintf(why, sizeof(why), "the app took longer than %u s to load", load_limit_ms(g) / 1000);
    fail(g, why);
}

static void on_limit(struct timer *timer)
{
    struct generation *g = container_of(timer, struct generation, limit);

    switch (g->state) {
    case GENERATION_LOADING: fail_late(g); return;
    case GENERATION_RETIRING:
        log_warn("generation has overstayed", "generation=%u requests=%u", g->version,
                 g->site->call_count);
        generation_close(g);
        return;
    case GENERATION_CLOSING: loop_later(g->env.loop, &g->close); return;
    default: return;
    }
}

/* In a hook, amid the app's code. */
static void on_stack(struct vm *vm, const char *traceback)
{
    struct generation *g = container_of(vm->env, struct generation, env);

    log_warn("where the long slice is", "worker=%u stack=%s", g->env.worker_id, traceback);
}

/* In a hook too. */
static void on_stop(struct vm *vm, struct task *task, uint64_t took_ms, const char *traceback)
{
    struct generation *g     = container_of(vm->env, struct generation, env);
    const char        *label = task_label(task);

    log_error("slice stopped", "worker=%u route=%s took_ms=%llu stack=%s", g->env.worker_id,
              label ? label : "", (unsigned long long)took_ms, traceback);
}

static const struct vm_hooks VM_HOOKS = {
    .push_error = script_push_error,
    .report     = script_report,
    .on_drained = on_vm_drained,
    .on_stack   = on_stack,
    .on_stop    = on_stop,
};

static int open_vm(struct generation *g, struct err *err)
{
    struct vm_options options = { .memory_bytes = g->config->lua_memory, .hooks = &VM_HOOKS };
    int               rc      = vm_open(&g->vm, g->env.sched, &options, err);

    if (rc == 0)
        rc = script_open(g->vm, &g->env, err);
    return rc;
}

/* --- nobody is served any more ------------------------------------------------------------------ */

static bool is_idle(const struct generation *g)
{
    return g->site->call_count == 0 && g->env.guest_count == 0;
}

static void on_site_idle(struct lsite *site, void *arg)
{
    struct generation *g = arg;

    if (g->state == GENERATION_RETIRING && is_idle(g))
        generation_close(g);
}

static void on_idle(struct later *later)
{
    struct generation *g = container_of(later, struct generation, idle);

    on_site_idle(g->site, g);
}

static void on_no_guests(struct env *env)
{
    struct generation *g = container_of(env, struct generation, env);

    if (g->state == GENERATION_RETIRING)
        loop_later(env->loop, &g->idle);
}

struct generation *generation_load(const struct env *env, const struct config *config,
                                   unsigned version, const struct generation_owner *owner,
                                   void *arg)
{
    struct generation *g   = calloc(1, sizeof(*g));
    struct err         err = { 0 };

    if (!g)
        return NULL;
    *g = (struct generation){
        .owner = owner, .arg = arg, .config = config, .version = version, .env = *env
    };
    g->env.generation = version;
    list_init(&g->link);
    timer_init(&g->limit, on_limit);
    later_init(&g->close, part);
    later_init(&g->idle, on_idle);
    g->env.on_no_guests = on_no_guests;
    if (open_vm(g, &err) != 0) {
        log_error("no Lua state for a generation", "generation=%u reason=%s", version, err.text);
        vm_close(g->vm);
        free(g);
        return NULL;
    }
    timer_start(&g->limit, env->loop, load_limit_ms(g));
    lboot_start(&g->boot, env->loop, g->vm, config->app_file, on_booted, g);
    return g;
}

/* --- serving --------------------------------------------------------------------------------------- */

void generation_serve(struct generation *g)
{
    assert(g->state == GENERATION_READY);
    enter(g, GENERATION_CURRENT);
    g->site->on_idle     = on_site_idle;
    g->site->on_idle_arg = g;
    lhttp_switch(g->env.http, g->site);
    lsite_start(g->site);
}

void generation_retire(struct generation *g, uint64_t drain_ms)
{
    if (g->state != GENERATION_CURRENT) {
        generation_close(g);
        return;
    }
    enter(g, GENERATION_RETIRING);
    lsite_retire(g->site);
    timer_start(&g->limit, g->env.loop, drain_ms);
    lsite_end_events(g->site);
    lws_worker_end(g->env.sockets, g->vm, WS_CODE_RESTART);
    if (is_idle(g))
        generation_close(g);
}

void generation_finish(struct generation *g, uint64_t limit_ms)
{
    bool is_at_work = g->env.guest_count > 0;

    if (is_at_work && g->state == GENERATION_CURRENT)
        generation_retire(g, limit_ms);
    else if (!is_at_work || g->state != GENERATION_RETIRING)
        generation_close(g);
}

void generation_end_events(struct generation *g)
{
    if (!g->site || g->state >= GENERATION_CLOSING)
        return;
    lsite_end_events(g->site);
    lws_worker_end(g->env.sockets, g->vm, WS_CODE_GOING_AWAY);
}

void generation_abandon(struct generation *g)
{
    if (g->state == GENERATION_CLOSED)
        return;
    timer_stop(&g->limit, g->env.loop);
    lboot_call_off(&g->boot);
    later_cancel(&g->close);
    later_cancel(&g->idle);
    lhttp_switch(g->env.http, NULL);
    vm_abandon_tasks(g->vm);
    vm_close(g->vm);
    list_remove(&g->link);
    free(g);
}
