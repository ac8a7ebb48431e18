#include "load/load_thread.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "load/load_conn.h"
#include "load/load_h2.h"
#include "load/load_state.h"
#include "load/load_tls.h"
#include "load/load_ws.h"

enum {
    CHECK_MS     = 50, /* from look to look: time limits, being stopped, the backlog */
    CHECK_MS_MIN = 5,  /* for short limits: a tenth of them, but not less */
};

/* --- the end -------------------------------------------------------------------------------------- */

static void on_end(struct timer *timer)
{
    load_thread_end(container_of(timer, struct load_thread, end));
}

/* --- looking after it ------------------------------------------------------------------------------ */

static void check_soon(struct load_thread *thread)
{
    uint64_t pause = thread->shared->plan->timeout_ms / 10;

    pause = pause > CHECK_MS ? CHECK_MS : pause < CHECK_MS_MIN ? CHECK_MS_MIN : pause;
    timer_start(&thread->check, thread->loop, pause);
}

static void publish(struct load_thread *thread)
{
    atomic_store_explicit(&thread->backlog, load_pace_backlog(&thread->pace, clock_mono_ns()),
                          memory_order_relaxed);
    atomic_store_explicit(&thread->counts.cpu_ns, clock_thread_cpu_ns(), memory_order_relaxed);
}

static void on_check(struct timer *timer)
{
    struct load_thread *thread = container_of(timer, struct load_thread, check);
    uint64_t            now_ns = clock_mono_ns();

    for (unsigned i = 0; i < thread->conn_count; i++)
        load_conn_check(&thread->conns[i], now_ns);
    publish(thread);
    if (atomic_load(&thread->shared->stopped))
        load_thread_end(thread);
    else
        check_soon(thread);
}

/* Each moment is the next one's in line; who has sent stands behind the others. */
static void on_due(struct load_pace *pace)
{
    struct load_thread *thread = container_of(pace, struct load_thread, pace);
    uint64_t            now_ns = clock_mono_ns();
    struct list        *first;

    while (load_pace_backlog(pace, now_ns) > 0 && (first = list_take_first(&thread->with_room)))
        load_conn_fill_one(container_of(first, struct load_conn, room), now_ns);
    if (!list_is_empty(&thread->with_room))
        load_pace_wait(pace);
}

/* --- life -------------------------------------------------------------------------------------------- */

static void run(void *arg)
{
    struct load_thread *thread = arg;

    /* An amount below the number of threads leaves this one nothing to do, and no event to say so. */
    thread->is_over = load_thread_is_done(thread);
    for (unsigned i = 0; i < thread->conn_count && !thread->is_over; i++)
        load_conn_open(&thread->conns[i]);
    if (!thread->is_over)
        loop_run(thread->loop);
    thread->is_over = true;
    publish(thread);
    for (unsigned i = 0; i < thread->conn_count; i++)
        load_conn_close(&thread->conns[i]);
    thread->on_over(thread);
}

/* Connections of thread I are I, I + threads, ... so that each has its share of the origins. */
static void init_conns(struct load_thread *thread)
{
    const struct load_plan *plan = thread->shared->plan;

    for (unsigned i = 0; i < thread->conn_count; i++)
        load_conn_init(&thread->conns[i], thread, thread->index + i * plan->threads,
                       thread->slots ? thread->slots + (size_t)i * plan->pipelining : NULL);
}

static unsigned share_of(unsigned total, unsigned threads, unsigned index)
{
    return total / threads + (index < total % threads);
}

static int open_thread(struct load_thread *thread, struct err *err)
{
    const struct load_plan *plan = thread->shared->plan;
    int                     rc   = loop_open(&thread->loop, err);

    if (rc != 0)
        return rc;
    thread->conn_count = share_of(plan->connections, plan->threads, thread->index);
    thread->conns      = calloc(thread->conn_count, sizeof(*thread->conns));
    thread->input      = malloc(LOAD_INPUT_BYTES);
    thread->output     = malloc(LOAD_OUTPUT_BYTES);
    if (plan->speech != LOAD_SPEAKS_H2)
        thread->slots =
            calloc((size_t)thread->conn_count * plan->pipelining, sizeof(*thread->slots));
    if (!thread->conns || !thread->input || !thread->output ||
        (plan->speech != LOAD_SPEAKS_H2 && !thread->slots))
        return err_set(err, ERR_MEMORY, "no memory for %u connections", plan->connections);
    rc = load_tls_open(thread, err);
    if (rc == 0)
        rc = load_ws_open(thread, err);
    if (rc != 0)
        return rc;
    init_conns(thread);
    if (plan->duration_ms)
        timer_start_ns(&thread->end, thread->loop, plan->duration_ms * NS_PER_MS);
    check_soon(thread);
    return plan->rate > 0 ? load_pace_open(&thread->pace, thread->loop, plan->rate, thread->index,
                                           plan->threads, thread->shared->start_ns, on_due, err)
                          : 0;
}

static void close_thread(struct load_thread *thread)
{
    load_pace_close(&thread->pace);
    if (thread->loop) {
        timer_stop(&thread->end, thread->loop);
        timer_stop(&thread->check, thread->loop);
    }
    load_h2_close(thread);
    load_tls_close(thread);
    load_ws_close(thread);
    loop_close(thread->loop);
    free(thread->conns);
    free(thread->slots);
    free(thread->input);
    free(thread->output);
}

int load_thread_start(struct load_thread *thread, struct load_shared *shared, unsigned index,
                      uint64_t quota, void (*on_over)(struct load_thread *), void *arg,
                      struct err *err)
{
    int rc;

    thread->shared  = shared;
    thread->index   = index;
    thread->quota   = quota;
    thread->on_over = on_over;
    thread->arg     = arg;
    thread->pace.fd = -1;
    list_init(&thread->with_room);
    load_h2_open(thread);
    timer_init(&thread->end, on_end);
    timer_init(&thread->check, on_check);
    rc = open_thread(thread, err);
    if (rc == 0)
        rc = thread_start(&thread->thread, "load", 0, run, thread, err);
    thread->is_started = rc == 0;
    if (rc != 0)
        close_thread(thread);
    return rc;
}

void load_thread_join(struct load_thread *thread)
{
    if (!thread->is_started)
        return;
    thread_join(&thread->thread);
    close_thread(thread);
}
