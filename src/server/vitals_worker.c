#include "server/vitals_worker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "bind/lhttp_state.h"
#include "http/exchange.h"
#include "http/serve.h"
#include "server/worker_generations.h"
#include "server/worker_state.h"
#include "vm/profile.h"
#include "vm/sched.h"

enum { SCHEDSTAT_BYTES = 96 };

static void set(_Atomic uint64_t *cell, uint64_t value)
{
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* The worker alone adds, so no locked instruction is needed. */
static void add(_Atomic uint64_t *cell, uint64_t value)
{
    set(cell, get(cell) + value);
}

/* --- hauls ------------------------------------------------------------------------------------------- */

void vitals_haul_free(struct vitals_haul *haul)
{
    profile_store_fini(&haul->store);
    free(haul);
}

/* Gives away what the store has; where there is no memory for that, what was seen is lost. */
static void send_haul(struct vitals_worker *v, uint64_t now_ns)
{
    struct profile_store *store = profile_seen(v->profile);
    struct vitals_haul   *haul  = malloc(sizeof(*haul));

    if (haul) {
        haul->from  = v;
        haul->turn  = v->longest;
        haul->store = *store;
        if (haul->turn.took_ns == 0)
            haul->turn.ended_ns = now_ns;
    } else {
        profile_store_fini(store);
    }
    profile_store_init(store);
    v->longest = (struct vitals_turn){ 0 };
    v->told_ns = now_ns;
    if (haul)
        v->on_haul(haul, v->arg);
}

/* Samples of a turn go before the next one runs, so that those of a long turn are its own. Waits are kept for a while,
 * unless none is left that could be added. */
static bool is_due(const struct vitals_worker *v, uint64_t now_ns)
{
    const struct profile_store *store = profile_seen(v->profile);

    if (store->samples || v->longest.took_ns)
        return true;
    return store->waits && (sched_task_count(v->worker->sched) == 0 ||
                            now_ns - v->told_ns >= VITALS_REST_MS * (uint64_t)NS_PER_MS);
}

/* --- turns --------------------------------------------------------------------------------------------- */

/* The second number of the line: ns in which the thread could have run, but had no processor. */
static uint64_t read_stalled(const struct vitals_worker *v)
{
    char    text[SCHEDSTAT_BYTES];
    ssize_t len = v->sched_fd < 0 ? -1 : pread(v->sched_fd, text, sizeof(text) - 1, 0);
    char   *at;

    if (len <= 0)
        return 0;
    text[len] = '\0';
    strtoull(text, &at, 10);
    return strtoull(at, NULL, 10);
}

/* How often the thread has gone to sleep by itself. */
static uint64_t read_sleeps(void)
{
    struct rusage usage = { 0 };

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

static void mark(struct vitals_worker *v, uint64_t now_ns)
{
    if (now_ns - v->mark.at_ns < VITALS_MARK_US * (uint64_t)NS_PER_US)
        return;
    v->mark.at_ns      = now_ns;
    v->mark.cpu_ns     = clock_thread_cpu_ns();
    v->mark.stalled_ns = read_stalled(v);
    v->mark.sleeps     = read_sleeps();
    set(&v->stalled_ns, v->mark.stalled_ns);
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
    return value < max ? value : max;
}

/* The mark may be older than the turn, by little. Time in which the thread neither ran nor waited for a processor nor
 * went to sleep was taken from the whole machine, by its host. */
static void note_long(struct vitals_worker *v, uint64_t now_ns, uint64_t took_ns)
{
    uint64_t ran     = clock_thread_cpu_ns() - v->mark.cpu_ns;
    uint64_t stalled = read_stalled(v) - v->mark.stalled_ns;

    ran = at_most(ran, took_ns);
    if (read_sleeps() == v->mark.sleeps)
        stalled = took_ns - ran;
    v->longest = (struct vitals_turn){ .ended_ns   = now_ns,
                                       .took_ns    = took_ns,
                                       .ran_ns     = ran,
                                       .stalled_ns = at_most(stalled, took_ns - ran) };
}

static void end_turn(struct vitals_worker *v, uint64_t now_ns)
{
    uint64_t took_ns = now_ns - v->began_ns;

    add(&v->active_ns, took_ns);
    if (took_ns > get(&v->longest_ns))
        set(&v->longest_ns, took_ns);
    if (took_ns >= VITALS_LONG_MS * (uint64_t)NS_PER_MS)
        note_long(v, now_ns, took_ns);
    v->began_ns = 0;
}

static void publish(struct vitals_worker *v)
{
    set(&v->connections, http_server_connections(v->worker->http));
    set(&v->tasks, sched_task_count(v->worker->sched));
    set(&v->lua_bytes, worker_generations_lua_bytes(v->worker));
}

/* Behind the profile's hook, which has filed what it has seen in the turn before. */
static void on_turn(struct loop_hook *hook)
{
    struct vitals_worker *v      = container_of(hook, struct vitals_worker, turn);
    uint64_t              now_ns = clock_mono_ns();

    if (v->began_ns)
        end_turn(v, now_ns);
    if (is_due(v, now_ns))
        send_haul(v, now_ns);
    v->began_ns = clock_mono_ns();
    mark(v, v->began_ns);
    publish(v);
}

/* What was seen is told in a turn more, or it would lie here until the worker wakes up. */
static void on_idle(struct loop_hook *hook)
{
    struct vitals_worker *v      = container_of(hook, struct vitals_worker, idle);
    uint64_t              now_ns = clock_mono_ns();

    if (v->began_ns)
        end_turn(v, now_ns);
    publish(v);
    if (is_due(v, now_ns))
        loop_later(v->worker->loop, &v->again);
}

/* Its presence keeps the loop from sleeping. */
static void go_on(struct later *later)
{
}

void vitals_worker_request(struct vitals_worker *v, const struct lhttp_finished *finished)
{
    uint64_t us = (loop_clock_ns(v->worker->loop) - finished->ex->started_ns) / NS_PER_US;

    hist_add(&v->times, us);
    if (us > get(&v->slowest_us))
        set(&v->slowest_us, us);
    if (finished->status >= 500)
        add(&v->failed, 1);
}

/* --- life -------------------------------------------------------------------------------------------------- */

int vitals_worker_open(struct vitals_worker **out, struct worker                  *worker,
                       void (*on_haul)(struct vitals_haul *haul, void *arg), void *arg,
                       struct err *err)
{
    struct vitals_worker *v = calloc(1, sizeof(*v));
    int                   rc;

    if (!v)
        return err_set(err, ERR_MEMORY, "no memory for a worker's vitals");
    v->worker   = worker;
    v->on_haul  = on_haul;
    v->arg      = arg;
    v->sched_fd = -1;
    loop_hook_init(&v->turn, on_turn);
    loop_hook_init(&v->idle, on_idle);
    later_init(&v->again, go_on);
    rc = profile_open(&v->profile, err);
    if (rc == 0)
        *out = v;
    else
        free(v);
    return rc;
}

void vitals_worker_close(struct vitals_worker *v)
{
    if (!v)
        return;
    profile_close(v->profile);
    if (v->sched_fd >= 0)
        close(v->sched_fd);
    free(v);
}

void vitals_worker_begin(struct vitals_worker *v)
{
    struct worker *w = v->worker;

    v->sched_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    v->began_ns = v->told_ns = clock_mono_ns();
    mark(v, v->began_ns);
    publish(v);
    profile_begin(v->profile, w->sched);
    loop_on_turn(w->loop, &v->turn);
    loop_on_idle(w->loop, &v->idle);
    w->vitals = v;
}

void vitals_worker_end(struct vitals_worker *v)
{
    struct worker *w = v->worker;

    w->vitals = NULL;
    profile_end(v->profile);
    loop_hook_remove(&v->turn);
    loop_hook_remove(&v->idle);
    later_cancel(&v->again);
    send_haul(v, clock_mono_ns());
}
