#include "load/load.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/err.h"
#include "load/load_state.h"
#include "load/load_thread.h"

enum { DESCRIPTORS_BESIDE = 64 /* of threads, and of whoever runs the load */ };

struct load {
    struct load_plan   plan;
    struct load_shared shared;
    atomic_uint        running; /* threads */
    _Atomic uint64_t   ended_ns;
    void (*on_over)(void *arg);
    void *arg;

    struct load_thread threads[]; /* plan.threads */
};

static void on_thread_over(struct load_thread *thread)
{
    struct load *load = thread->arg;

    if (atomic_fetch_sub(&load->running, 1) != 1)
        return;
    atomic_store(&load->ended_ns, clock_mono_ns());
    load->on_over(load->arg);
}

static uint64_t quota_of(const struct load_plan *plan, unsigned index)
{
    if (!plan->amount)
        return UINT64_MAX;
    return plan->amount / plan->threads + (index < plan->amount % plan->threads);
}

static int start_threads(struct load *load, struct err *err)
{
    for (unsigned i = 0; i < load->plan.threads; i++) {
        int rc = load_thread_start(&load->threads[i], &load->shared, i, quota_of(&load->plan, i),
                                   on_thread_over, load, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- what can be had ------------------------------------------------------------------------------ */

static int check_bytes(const struct load_plan *plan, struct err *err)
{
    for (unsigned i = 0; i < plan->request_count; i++)
        if (plan->requests[i].bytes.len > LOAD_OUT_BYTES_MAX / plan->pipelining)
            return err_set(
                err, ERR_TOO_LARGE,
                "requests of %zu bytes, %u of them on a connection, are more than %d MiB",
                plan->requests[i].bytes.len, plan->pipelining, LOAD_OUT_BYTES_MAX >> 20);
    return 0;
}

static int raise_descriptors(const struct load_plan *plan, struct err *err)
{
    rlim_t        wanted = plan->connections + (rlim_t)plan->threads * 4 + DESCRIPTORS_BESIDE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return 0;
    if (limit.rlim_max < wanted)
        return err_set(err, ERR_TOO_LARGE,
                       "%u connections need %llu descriptors, and %llu is the limit (ulimit -n)",
                       plan->connections, (unsigned long long)wanted,
                       (unsigned long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? 0
               : err_set_errno(err, "descriptors for %u connections", plan->connections);
}

/* --- life -------------------------------------------------------------------------------------------- */

int load_start(struct load **out, const struct load_plan *plan, void (*on_over)(void *arg),
               void *arg, struct err *err)
{
    struct load *load;
    int          rc = check_bytes(plan, err);

    if (rc == 0)
        rc = raise_descriptors(plan, err);
    if (rc != 0)
        return rc;
    load = calloc(1, sizeof(*load) + plan->threads * sizeof(load->threads[0]));
    if (!load)
        return err_set(err, ERR_MEMORY, "no memory for a load");
    load->plan            = *plan;
    load->shared.plan     = &load->plan;
    load->shared.start_ns = clock_mono_ns();
    load->on_over         = on_over;
    load->arg             = arg;
    atomic_init(&load->running, plan->threads);
    rc = start_threads(load, err);
    if (rc != 0) {
        load_free(load);
        return rc;
    }
    *out = load;
    return 0;
}

void load_stop(struct load *load)
{
    atomic_store(&load->shared.stopped, true);
}

int load_failure(const struct load *load, struct err *err)
{
    if (!atomic_load(&load->shared.has_failed))
        return 0;
    return err_set(err, load->shared.failure.code, "%s", load->shared.failure.text);
}

void load_free(struct load *load)
{
    if (!load)
        return;
    load_stop(load);
    for (unsigned i = 0; i < load->plan.threads; i++)
        load_thread_join(&load->threads[i]);
    free(load);
}

static uint64_t cell(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static void add_thread(const struct load_thread *thread, struct load_totals *totals)
{
    const struct load_counts *counts = &thread->counts;

    for (unsigned i = 0; i < LOAD_STATUSES; i++)
        totals->statuses[i] += cell(&counts->statuses[i]);
    for (unsigned i = 0; i < LOAD_FAULTS; i++)
        totals->faults[i] += cell(&counts->faults[i]);
    totals->mismatched += cell(&counts->mismatched);
    totals->late += cell(&counts->late);
    totals->backlog += cell(&thread->backlog);
    totals->connections += cell(&counts->connections);
    totals->unasked += cell(&counts->unasked);
    totals->cpu_ns += cell(&counts->cpu_ns);
    totals->bytes_in += cell(&counts->bytes_in);
    totals->bytes_out += cell(&counts->bytes_out);
    /* Behind what became of requests, so that no more are seen to have ended than were sent. */
    totals->sent += cell(&counts->sent);
    if (totals->latency)
        hist_merge(totals->latency, &counts->latency);
    if (totals->service)
        hist_merge(totals->service, &counts->service);
}

void load_read(const struct load *load, struct load_totals *totals)
{
    struct hist *latency = totals->latency, *service = totals->service;
    uint64_t     ended = atomic_load(&load->ended_ns);

    *totals            = (struct load_totals){ .latency = latency, .service = service };
    totals->elapsed_ns = (ended ? ended : clock_mono_ns()) - load->shared.start_ns;
    for (unsigned i = 0; i < load->plan.threads; i++)
        add_thread(&load->threads[i], totals);
}
