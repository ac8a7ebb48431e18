/* How a turn goes: look at the sockets (waiting only when nothing else is to be done), run their
 * callbacks, then the work put off, then the timers.
 *
 * libevent calls back between its wait and its return, and has no hook for the moment in between.
 * So each callback comes by way of on_io(), and the first one of a turn begins it: the clock is
 * read once, and the heartbeat beats before anything can be late.
 *
 * libevent's own timers are not used: its clock is coarse (seven sleeps of 1 ms took 28 ms), and
 * its precise one costs a timerfd_settime() each turn. */
#include "ev/loop.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/inbox.h"
#include "ev/wheel.h"

/* Then the sockets get a look: work that begets work must not starve them. */
enum { LATER_ROUNDS_MAX = 64 };

struct loop {
    struct event_base *base;
    struct inbox      *inbox; /* owned */
    struct io          inbox_io;

    uint64_t now_ns; /* of the running turn */
    uint64_t now_ms;
    bool     in_turn; /* now_* and the heartbeat are this turn's */
    bool     quiet;   /* no descriptor had news in the last look */

    /* The loop's time is (the kernel's & clock_runs) + clock_base_ns, so that holding it costs no
     * branch: all ones and 0 at first, 0 and the time while it is held. */
    uint64_t clock_runs;
    uint64_t clock_base_ns;
    int64_t  wall_base_ms; /* the same for the wall clock */
    bool     running;
    bool     broken;

    struct list later;
    struct list on_turn;
    struct list on_idle;

    struct wheel wheel;
    int          timer_fd;
    struct io    timer_io; /* edge-triggered: setting it anew clears it, nobody need read it */
    uint64_t     armed_ns; /* WHEEL_NEVER: it will not fire */

    /* Read by the watchdog. */
    _Atomic uint64_t turns;
    _Atomic uint64_t busy_since_ns;
};

/* --- the clock ------------------------------------------------------------------------------ */

static void set_now(struct loop *loop, uint64_t now_ns)
{
    loop->now_ns = now_ns;
    loop->now_ms = now_ns / NS_PER_MS;
}

/* Returns the kernel's, which the watchdog counts by. */
static uint64_t read_clock(struct loop *loop)
{
    uint64_t real_ns = clock_mono_ns();

    set_now(loop, (real_ns & loop->clock_runs) + loop->clock_base_ns);
    return real_ns;
}

uint64_t loop_clock_ns(const struct loop *loop)
{
    return (clock_mono_ns() & loop->clock_runs) + loop->clock_base_ns;
}

int64_t loop_wall_ms(const struct loop *loop)
{
    return (clock_wall_ms() & (int64_t)loop->clock_runs) + loop->wall_base_ms;
}

uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns;
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_ms;
}

/* --- hooks ---------------------------------------------------------------------------------- */

void loop_hook_init(struct loop_hook *hook, void (*fn)(struct loop_hook *self))
{
    list_init(&hook->link);
    hook->fn = fn;
}

void loop_on_turn(struct loop *loop, struct loop_hook *hook)
{
    list_remove(&hook->link);
    list_append(&loop->on_turn, &hook->link);
}

void loop_on_idle(struct loop *loop, struct loop_hook *hook)
{
    list_remove(&hook->link);
    list_append(&loop->on_idle, &hook->link);
}

void loop_hook_remove(struct loop_hook *hook)
{
    list_remove(&hook->link);
}

static void run_hooks(struct list *hooks)
{
    list_each_safe(node, hooks)
    {
        struct loop_hook *hook = container_of(node, struct loop_hook, link);

        hook->fn(hook);
    }
}

/* --- a turn's beginning --------------------------------------------------------------------- */

static void begin_turn(struct loop *loop)
{
    uint64_t turns = atomic_load_explicit(&loop->turns, memory_order_relaxed);
    uint64_t real_ns;

    loop->in_turn = true;
    real_ns       = read_clock(loop);
    atomic_store_explicit(&loop->turns, turns + 1, memory_order_relaxed);
    atomic_store_explicit(&loop->busy_since_ns, real_ns, memory_order_relaxed);
    wheel_ripen_soon(&loop->wheel);
    run_hooks(&loop->on_turn);
}

uint64_t loop_turns(const struct loop *loop)
{
    return atomic_load_explicit(&loop->turns, memory_order_relaxed);
}

uint64_t loop_busy_since_ns(const struct loop *loop)
{
    return atomic_load_explicit(&loop->busy_since_ns, memory_order_relaxed);
}

/* --- descriptors ---------------------------------------------------------------------------- */

static void on_io(evutil_socket_t fd, short what, void *arg)
{
    struct io *io = arg;

    if (!io->loop->in_turn)
        begin_turn(io->loop);
    io->fn(fd, what, io->arg);
}

static int io_start(struct io *io, struct loop *loop, int fd, short what, io_fn fn, void *arg)
{
    io->loop = loop;
    io->fn   = fn;
    io->arg  = arg;
    if (event_assign(&io->event, loop->base, fd, (short)(what | EV_PERSIST), on_io, io) < 0)
        return ERR_SYSTEM;
    return event_add(&io->event, NULL) < 0 ? ERR_SYSTEM : 0;
}

/* All three conditions: with EV_CLOSED alone libevent spins on a reset. */
int io_start_edge(struct io *io, struct loop *loop, int fd, io_fn fn, void *arg)
{
    return io_start(io, loop, fd, EV_READ | EV_WRITE | EV_CLOSED | EV_ET, fn, arg);
}

int io_start_level(struct io *io, struct loop *loop, int fd, io_fn fn, void *arg)
{
    return io_start(io, loop, fd, EV_READ, fn, arg);
}

void io_stop(struct io *io)
{
    if (event_initialized(&io->event))
        event_del(&io->event);
}

/* --- work put off --------------------------------------------------------------------------- */

void later_init(struct later *later, void (*fn)(struct later *self))
{
    list_init(&later->link);
    later->fn = fn;
}

void loop_later(struct loop *loop, struct later *later)
{
    if (!list_is_linked(&later->link))
        list_append(&loop->later, &later->link);
}

void later_cancel(struct later *later)
{
    list_remove(&later->link);
}

static void run_later_round(struct loop *loop)
{
    struct list  round;
    struct list *node;

    list_init(&round);
    list_splice(&round, &loop->later);
    while ((node = list_take_first(&round))) {
        struct later *later = container_of(node, struct later, link);

        later->fn(later);
    }
}

static void run_later(struct loop *loop)
{
    for (unsigned i = 0; i < LATER_ROUNDS_MAX && !list_is_empty(&loop->later); i++)
        run_later_round(loop);
}

/* --- timers --------------------------------------------------------------------------------- */

struct wheel *loop_wheel(struct loop *loop)
{
    return &loop->wheel;
}

static void on_timer_fd(int fd, short what, void *arg)
{
    struct loop *loop = arg;

    loop->armed_ns = loop->clock_runs; /* WHEEL_NEVER, or 0 while the clock is held */
}

/* 0 takes it back. */
static void set_timer_fd(struct loop *loop, uint64_t real_ns)
{
    struct itimerspec at = { .it_value = { (time_t)(real_ns / NS_PER_S),
                                           (long)(real_ns % NS_PER_S) } };
    int               rc = timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);

    assert(rc == 0);
    (void)rc;
}

/* One set for an earlier time stays: timers that are started and stopped for each request would
 * cost a system call each, the wake-up for nothing costs one now and then. */
static void arm_timer(struct loop *loop)
{
    uint64_t next_ns = wheel_next_ns(&loop->wheel);

    if (next_ns < loop->armed_ns) {
        set_timer_fd(loop, next_ns - loop->clock_base_ns);
        loop->armed_ns = next_ns;
    }
}

static void fire_timers(struct loop *loop)
{
    struct list *node;

    wheel_advance(&loop->wheel, loop->now_ns);
    while ((node = list_take_first(&loop->wheel.ripe))) {
        struct timer *timer = container_of(node, struct timer, link);

        timer->fn(timer);
    }
}

/* --- a clock that is held --------------------------------------------------------------------- */

bool loop_clock_is_held(const struct loop *loop)
{
    return loop->clock_runs == 0;
}

/* On a whole millisecond: timers of one length that start now end together, to the millisecond. */
void loop_hold_clock(struct loop *loop)
{
    int64_t wall_ms = loop_wall_ms(loop);

    if (loop_clock_is_held(loop))
        return;
    loop->clock_base_ns = (loop_clock_ns(loop) / NS_PER_MS + 1) * NS_PER_MS;
    loop->wall_base_ms  = wall_ms;
    loop->clock_runs    = 0;
    loop->armed_ns      = 0; /* nothing comes before: arm_timer() lets the descriptor be */
    set_timer_fd(loop, 0);
    set_now(loop, loop->clock_base_ns);
}

void loop_move_clock(struct loop *loop, uint64_t to_ns)
{
    assert(loop_clock_is_held(loop) && to_ns >= loop->clock_base_ns);
    loop->wall_base_ms += (int64_t)(to_ns / NS_PER_MS - loop->clock_base_ns / NS_PER_MS);
    loop->clock_base_ns = to_ns;
    set_now(loop, to_ns);
}

/* The monotonic one never goes back: it runs on from where it stands. Held for longer than it was
 * moved, it is behind the kernel's, and the difference wraps around as it should. */
void loop_release_clock(struct loop *loop)
{
    if (!loop_clock_is_held(loop))
        return;
    loop->clock_base_ns -= clock_mono_ns();
    loop->wall_base_ms = 0;
    loop->clock_runs   = UINT64_MAX;
    loop->armed_ns     = WHEEL_NEVER;
}

bool loop_is_quiet(const struct loop *loop)
{
    return loop->quiet;
}

/* --- the loop ------------------------------------------------------------------------------- */

static bool has_work(const struct loop *loop)
{
    return loop->broken || !list_is_empty(&loop->later) || !list_is_empty(&loop->wheel.soon) ||
           wheel_next_ns(&loop->wheel) <= loop->now_ns;
}

static void look_at_sockets(struct loop *loop)
{
    int flags = EVLOOP_ONCE;

    if (!has_work(loop))
        run_hooks(&loop->on_idle);
    if (has_work(loop)) {
        flags |= EVLOOP_NONBLOCK;
    } else {
        arm_timer(loop);
        atomic_store_explicit(&loop->busy_since_ns, 0, memory_order_relaxed);
    }
    loop->in_turn = false;
    event_base_loop(loop->base, flags);
    loop->quiet = !loop->in_turn;
    if (loop->quiet)
        begin_turn(loop);
}

void loop_run(struct loop *loop)
{
    assert(!loop->running);
    loop->running = true;
    read_clock(loop);
    while (!loop->broken) {
        look_at_sockets(loop);
        run_later(loop);
        fire_timers(loop);
    }
    atomic_store_explicit(&loop->busy_since_ns, 0, memory_order_relaxed);
    loop->broken  = false;
    loop->running = false;
}

void loop_break(struct loop *loop)
{
    loop->broken = true;
}

struct inbox *loop_inbox(struct loop *loop)
{
    return loop->inbox;
}

/* --- life ----------------------------------------------------------------------------------- */

static void on_inbox(int fd, short what, void *arg)
{
    struct loop *loop = arg;

    inbox_hand_out(loop->inbox);
}

static int open_inbox(struct loop *loop, struct err *err)
{
    int rc = inbox_open(&loop->inbox, err);

    if (rc < 0)
        return rc;
    if (io_start_edge(&loop->inbox_io, loop, inbox_fd(loop->inbox), on_inbox, loop) < 0) {
        rc = err_set_errno(err, "eventfd");
        inbox_free(loop->inbox);
    }
    return rc;
}

static void close_inbox(struct loop *loop)
{
    io_stop(&loop->inbox_io);
    inbox_free(loop->inbox);
}

/* Its warnings repeat what return values say. Before an error it ends the process. */
static void on_libevent_log(int severity, const char *text)
{
    if (severity == EVENT_LOG_ERR)
        fprintf(stderr, "libevent: %s\n", text);
}

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base   *base   = NULL;

    event_set_log_callback(on_libevent_log);
    if (!config)
        return NULL;
    if (event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE) == 0 &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
                                          EVENT_BASE_FLAG_NO_CACHE_TIME) == 0)
        base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static int open_timer_fd(struct loop *loop, struct err *err)
{
    loop->armed_ns = WHEEL_NEVER;
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->timer_fd < 0)
        return err_set_errno(err, "timerfd");
    if (io_start_edge(&loop->timer_io, loop, loop->timer_fd, on_timer_fd, loop) < 0) {
        int rc = err_set_errno(err, "timerfd");

        close(loop->timer_fd);
        return rc;
    }
    return 0;
}

static void close_timer_fd(struct loop *loop)
{
    io_stop(&loop->timer_io);
    close(loop->timer_fd);
}

int loop_open(struct loop **out, struct err *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    int          rc;

    if (!loop)
        return err_set(err, ERR_MEMORY, "no memory for an event loop");
    list_init(&loop->later);
    list_init(&loop->on_turn);
    list_init(&loop->on_idle);
    loop->clock_runs = UINT64_MAX;
    read_clock(loop);
    wheel_init(&loop->wheel, loop->now_ns);

    errno      = 0;
    loop->base = new_base();
    if (!loop->base) {
        rc = errno ? err_set_errno(err, "epoll")
                   : err_set(err, ERR_MEMORY, "no memory for libevent");
        goto free_loop;
    }
    rc = open_timer_fd(loop, err);
    if (rc < 0)
        goto free_base;
    rc = open_inbox(loop, err);
    if (rc < 0)
        goto drop_timer_fd;
    *out = loop;
    return 0;

drop_timer_fd:
    close_timer_fd(loop);
free_base:
    event_base_free(loop->base);
free_loop:
    free(loop);
    return rc;
}

void loop_close(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop->running);
    close_inbox(loop);
    close_timer_fd(loop);
    assert(event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ADDED) == 0);
    assert(list_is_empty(&loop->later) && wheel_is_empty(&loop->wheel));
    event_base_free(loop->base);
    free(loop);
}
