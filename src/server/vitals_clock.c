#include "server/vitals_clock.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/hist.h"
#include "bind/lend.h"
#include "ev/loop.h"
#include "ev/pool.h"
#include "ev/thread.h"
#include "server/vitals_process.h"
#include "server/vitals_worker.h"

enum { LINE_BYTES_MAX = 256 * 1024 };

/* What only grows, as it was when the last line was told. */
struct counts {
    uint64_t cpu_ns, active_ns, stalled_ns, turns, requests, failed, us;
};

struct target {
    struct vitals_target of;
    clockid_t            clock;
    uint64_t             looked_cpu_ns; /* at the last look */
    struct counts        told;

    /* Since the last line. */
    unsigned looks;
    uint64_t late_ns,
        latest_ns; /* how long a turn had lasted, at each look: its sum, the longest */
};

struct vitals_clock {
    struct thread               thread;
    sem_t                       stop;
    struct vitals_clock_options options;
    struct target              *targets;
    uint64_t                    began_ns, told_ns;
    struct vitals_process       told;
    struct hist                *seen, *older; /* of all workers: now, and at the last line */
};

static uint64_t get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static uint64_t cpu_ns(const struct target *target)
{
    struct timespec ts;

    if (clock_gettime(target->clock, &ts) != 0)
        return target->looked_cpu_ns;
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* --- a look -------------------------------------------------------------------------------------------- */

/* One that is at work, or has been for long: then it may sleep in a C function. A signal may break off the sleep
 * of code that takes no account of signals, so who sleeps for a short time is let alone. */
static bool is_worth_a_signal(const struct target *target, uint64_t age_ns, uint64_t now_cpu_ns)
{
    return age_ns > 0 &&
           (now_cpu_ns != target->looked_cpu_ns || age_ns >= VITALS_LONG_MS * (uint64_t)NS_PER_MS);
}

static void look_at(struct target *target, uint64_t now_ns)
{
    uint64_t since      = loop_busy_since_ns(target->of.loop);
    uint64_t age_ns     = since && now_ns > since ? now_ns - since : 0;
    uint64_t now_cpu_ns = cpu_ns(target);

    target->looks++;
    target->late_ns += age_ns;
    if (age_ns > target->latest_ns)
        target->latest_ns = age_ns;
    if (is_worth_a_signal(target, age_ns, now_cpu_ns))
        pthread_kill(target->of.thread, SIGPROF);
    target->looked_cpu_ns = now_cpu_ns;
}

/* --- a line --------------------------------------------------------------------------------------------- */

/* A turn that runs is not in active_ns yet; it would come as a whole at its end. */
static uint64_t active_ns(const struct target *target, uint64_t now_ns)
{
    uint64_t since = loop_busy_since_ns(target->of.loop);

    return get(&target->of.vitals->active_ns) + (since && now_ns > since ? now_ns - since : 0);
}

static struct counts count(const struct target *target, uint64_t now_ns)
{
    const struct vitals_worker *v = target->of.vitals;

    return (struct counts){ .cpu_ns     = cpu_ns(target),
                            .active_ns  = active_ns(target, now_ns),
                            .stalled_ns = get(&v->stalled_ns),
                            .turns      = loop_turns(target->of.loop),
                            .requests   = get(&v->times.total),
                            .failed     = get(&v->failed),
                            .us         = get(&v->times.sum) };
}

static uint64_t more(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0; /* a turn's end may fall between two reads */
}

static double share(uint64_t now, uint64_t before, uint64_t of_ns)
{
    double part = (double)more(now, before) / (double)of_ns;

    return part < 1 ? part : 1;
}

static uint64_t exchange(_Atomic uint64_t *cell)
{
    return atomic_exchange_explicit(cell, 0, memory_order_relaxed);
}

static void add_worker(struct buf *out, struct target *target, uint64_t now_ns, uint64_t took_ns)
{
    struct vitals_worker *v   = target->of.vitals;
    struct counts         now = count(target, now_ns), *was = &target->told;
    uint64_t              requests = more(now.requests, was->requests);
    uint64_t              longest  = exchange(&v->longest_ns);
    struct vitals_backlog backlog;

    vitals_backlog_read(&backlog, target->of.listening);
    buf_printf(out, "{\"cpu\":%.3f,\"busy\":%.3f,\"stalled\":%.3f,\"turns\":%llu,",
               share(now.cpu_ns, was->cpu_ns, took_ns),
               share(now.active_ns, was->active_ns, took_ns),
               share(now.stalled_ns, was->stalled_ns, took_ns),
               (unsigned long long)more(now.turns, was->turns));
    if (target->latest_ns > longest)
        longest = target->latest_ns;
    buf_printf(out, "\"delay\":%.3f,\"delay_max\":%.3f,",
               target->looks ? (double)target->late_ns / target->looks / 1e6 : 0,
               (double)longest / 1e6);
    buf_printf(out, "\"requests\":%llu,\"failed\":%llu,\"mean\":%.3f,\"slowest\":%.3f,",
               (unsigned long long)requests, (unsigned long long)more(now.failed, was->failed),
               requests ? (double)more(now.us, was->us) / (double)requests / 1e3 : 0,
               (double)exchange(&v->slowest_us) / 1e3);
    buf_printf(out,
               "\"connections\":%llu,\"tasks\":%llu,\"lua\":%llu,\"backlog\":%u,"
               "\"backlog_max\":%u}",
               (unsigned long long)get(&v->connections), (unsigned long long)get(&v->tasks),
               (unsigned long long)get(&v->lua_bytes), backlog.waiting, backlog.max);
    target->told    = now;
    target->looks   = 0;
    target->late_ns = target->latest_ns = 0;
}

static void add_process(struct vitals_clock *clock, struct buf *out, uint64_t took_ns)
{
    struct vitals_process now, *was = &clock->told;

    vitals_process_read(&now);
    buf_printf(out, "\"cpu\":%.3f,\"rss\":%llu,\"fds\":%llu,",
               (double)more(now.cpu_ns, was->cpu_ns) / (double)took_ns,
               (unsigned long long)now.rss_bytes, (unsigned long long)now.fds);
    buf_printf(out, "\"switches\":%llu,\"preemptions\":%llu,\"overflows\":%llu,",
               (unsigned long long)more(now.switches, was->switches),
               (unsigned long long)more(now.preemptions, was->preemptions),
               (unsigned long long)more(now.overflows, was->overflows));
    *was = now;
}

/* Of all workers together: a histogram each would be too much to read each time. */
static void add_times(struct vitals_clock *clock, struct buf *out)
{
    struct hist *now = clock->seen;

    *now = (struct hist){ 0 };
    for (unsigned i = 0; i < clock->options.count; i++)
        hist_merge(now, &clock->targets[i].of.vitals->times);
    hist_subtract(now, clock->older);
    buf_printf(out, "\"p50\":%.3f,\"p99\":%.3f,", (double)hist_percentile(now, 50) / 1e3,
               (double)hist_percentile(now, 99) / 1e3);
    hist_merge(clock->older, now);
}

static void add_lane(struct buf *out, struct lane *lane)
{
    struct lane_stats stats;

    if (!lane)
        return;
    lane_stats(lane, &stats);
    if (out->at[out->len - 1] == '}')
        buf_add_byte(out, ',');
    buf_printf(out, "{\"name\":\"%s\",\"queued\":%u,\"running\":%u,\"done\":%llu,\"refused\":%llu}",
               stats.name, stats.queued, stats.running, (unsigned long long)stats.done,
               (unsigned long long)stats.refused);
}

static void add_lanes(struct vitals_clock *clock, struct buf *out)
{
    const struct lend *lend = clock->options.lend;

    buf_add_str(out, STR("\"lanes\":["));
    add_lane(out, lend->lane_file);
    add_lane(out, lend->lane_cpu);
    add_lane(out, lend->lane_sqlite);
    buf_add_str(out, STR("],"));
}

static void tell(struct vitals_clock *clock, uint64_t now_ns)
{
    uint64_t   took_ns = now_ns - clock->told_ns;
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_printf(&line, "{\"t\":%.3f,\"ms\":%.1f,", (double)(now_ns - clock->began_ns) / 1e9,
               (double)took_ns / 1e6);
    add_process(clock, &line, took_ns);
    add_times(clock, &line);
    add_lanes(clock, &line);
    buf_add_str(&line, STR("\"workers\":["));
    for (unsigned i = 0; i < clock->options.count; i++) {
        if (i)
            buf_add_byte(&line, ',');
        add_worker(&line, &clock->targets[i], now_ns, took_ns);
    }
    buf_add_str(&line, STR("]}"));
    clock->told_ns = now_ns;
    clock->options.on_line(&line, clock->options.arg);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

static bool is_stopped_by(struct vitals_clock *clock, uint64_t at_ns)
{
    struct timespec ts = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) };

    for (;;) {
        if (sem_clockwait(&clock->stop, CLOCK_MONOTONIC, &ts) == 0)
            return true;
        if (errno != EINTR)
            return false;
    }
}

/* Behind its time, it does not catch up: looks that come all at once would see one moment. */
static void run(void *arg)
{
    struct vitals_clock *clock    = arg;
    const uint64_t       look_ns  = VITALS_LOOK_MS * (uint64_t)NS_PER_MS;
    const uint64_t       every_ns = clock->options.every_ms * (uint64_t)NS_PER_MS;
    uint64_t             next     = clock->began_ns + look_ns;

    while (!is_stopped_by(clock, next)) {
        uint64_t now_ns = clock_mono_ns();

        for (unsigned i = 0; i < clock->options.count; i++)
            look_at(&clock->targets[i], now_ns);
        if (now_ns - clock->told_ns + look_ns / 2 >= every_ns)
            tell(clock, now_ns);
        next += look_ns;
        if (next < now_ns)
            next = now_ns + look_ns;
    }
    tell(clock, clock_mono_ns());
}

/* --- life -------------------------------------------------------------------------------------------------- */

static int fill_targets(struct vitals_clock *clock, struct err *err)
{
    for (unsigned i = 0; i < clock->options.count; i++) {
        struct target *target = &clock->targets[i];

        target->of = clock->options.targets[i];
        if (pthread_getcpuclockid(target->of.thread, &target->clock) != 0)
            return err_set(err, ERR_SYSTEM, "a worker has no CPU clock");
        target->looked_cpu_ns = cpu_ns(target);
        target->told          = count(target, clock->began_ns);
    }
    return 0;
}

static void free_clock(struct vitals_clock *clock)
{
    sem_destroy(&clock->stop);
    free(clock->targets);
    free(clock->seen);
    free(clock->older);
    free(clock);
}

static int fill(struct vitals_clock *clock, struct err *err)
{
    int rc;

    sem_init(&clock->stop, 0, 0);
    clock->targets = calloc(clock->options.count, sizeof(*clock->targets));
    clock->seen    = calloc(1, sizeof(*clock->seen));
    clock->older   = calloc(1, sizeof(*clock->older));
    if (!clock->targets || !clock->seen || !clock->older)
        return err_set(err, ERR_MEMORY, "no memory for vitals");
    clock->began_ns = clock->told_ns = clock_mono_ns();
    vitals_process_read(&clock->told);
    rc = fill_targets(clock, err);
    return rc == 0 ? thread_start(&clock->thread, "vitals", 0, run, clock, err) : rc;
}

int vitals_clock_open(struct vitals_clock **out, const struct vitals_clock_options *options,
                      struct err *err)
{
    struct vitals_clock *clock = calloc(1, sizeof(*clock));
    int                  rc;

    if (!clock)
        return err_set(err, ERR_MEMORY, "no memory for vitals");
    clock->options = *options;
    rc             = fill(clock, err);
    if (rc == 0)
        *out = clock;
    else
        free_clock(clock);
    return rc;
}

void vitals_clock_close(struct vitals_clock *clock)
{
    if (!clock)
        return;
    sem_post(&clock->stop);
    thread_join(&clock->thread);
    free_clock(clock);
}
