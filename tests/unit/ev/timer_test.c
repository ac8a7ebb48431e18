#include "ev/timer.h"

#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop *loop;

static void open_loop(void)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
}

static void close_loop(void)
{
    loop_close(loop);
    loop = NULL;
}

/* --- one after the other --------------------------------------------------------------------- */

struct sleeper {
    struct timer timer;
    unsigned     left;
    uint64_t     delay_ns;
};

static void on_slept(struct timer *timer)
{
    struct sleeper *sleeper = container_of(timer, struct sleeper, timer);

    CHECK(!timer_is_running(timer));
    CHECK(clock_mono_ns() >= timer->due_ns);
    if (--sleeper->left == 0)
        loop_break(loop);
    else
        timer_start_ns(timer, loop, sleeper->delay_ns);
}

static uint64_t sleep_in_turn_ns(unsigned times, uint64_t delay_ns)
{
    struct sleeper sleeper = { .left = times, .delay_ns = delay_ns };
    uint64_t       began   = clock_mono_ns();

    timer_init(&sleeper.timer, on_slept);
    timer_start_ns(&sleeper.timer, loop, delay_ns);
    loop_run(loop);
    return clock_mono_ns() - began;
}

/* The best of many runs, since other processes may take the processor away. */
TEST(seven_sleeps_of_one_millisecond_take_less_than_nine)
{
    uint64_t best = UINT64_MAX;

    open_loop();
    for (unsigned run = 0; run < 1000 && best >= 9 * NS_PER_MS; run++) {
        uint64_t took = sleep_in_turn_ns(7, NS_PER_MS);

        CHECK(took >= 7 * NS_PER_MS);
        if (took < best)
            best = took;
    }
    CHECK(best < 9 * NS_PER_MS);
    close_loop();
}

TEST(a_delay_of_nothing_fires_in_the_next_turn)
{
    uint64_t turns;

    open_loop();
    turns = loop_turns(loop);
    sleep_in_turn_ns(5, 0);
    CHECK_INT(loop_turns(loop) - turns, 5);
    close_loop();
}

/* --- side by side ----------------------------------------------------------------------------- */

static char  order[16];
static char *order_at;

struct mark {
    struct timer timer;
    char         name;
    struct mark *stops;
    struct mark *starts;
    bool         last;
};

static void on_mark(struct timer *timer)
{
    struct mark *mark = container_of(timer, struct mark, timer);

    *order_at++ = mark->name;
    if (mark->stops)
        timer_stop(&mark->stops->timer, loop);
    if (mark->starts)
        timer_start(&mark->starts->timer, loop, 1);
    mark->stops = mark->starts = NULL;
    if (mark->last)
        loop_break(loop);
}

static void start_mark(struct mark *mark, char name, unsigned delay_ms)
{
    mark->name = name;
    timer_init(&mark->timer, on_mark);
    timer_start(&mark->timer, loop, delay_ms);
}

static void run_marks(void)
{
    order_at = order;
    loop_run(loop);
    *order_at = '\0';
}

TEST(timers_fire_in_the_order_of_their_time)
{
    struct mark a = { .last = true }, b = { 0 }, c = { 0 };

    open_loop();
    start_mark(&a, 'a', 80);
    start_mark(&b, 'b', 2);
    start_mark(&c, 'c', 10);
    run_marks();
    CHECK_STR(order, "bca");
    close_loop();
}

TEST(a_timer_may_stop_and_start_others_and_itself_while_they_fire)
{
    struct mark a = { 0 }, b = { 0 }, c = { 0 };

    open_loop();
    start_mark(&a, 'a', 0);
    start_mark(&b, 'b', 0); /* due in the same turn as a, which stops it */
    start_mark(&c, 'c', 0);
    a.stops  = &b;
    a.starts = &a;
    c.starts = &b;
    b.last   = true;
    run_marks();
    CHECK(strcmp(order, "acab") == 0);
    CHECK(!timer_is_running(&a.timer));
    close_loop();
}

TEST(a_restarted_timer_does_not_fire_at_its_old_time)
{
    struct mark a = { 0 }, b = { .last = true };

    open_loop();
    start_mark(&a, 'a', 1);
    timer_start(&a.timer, loop, 60000); /* not 20: a machine that is busy may lose 10 ms */
    start_mark(&b, 'b', 10);
    run_marks();
    CHECK_STR(order, "b");
    timer_stop(&a.timer, loop);
    timer_stop(&a.timer, loop);
    CHECK(!timer_is_running(&a.timer));
    close_loop();
}

TEST(an_earlier_timer_started_later_moves_the_alarm)
{
    struct mark a = { 0 }, b = { .last = true };
    uint64_t    began;

    open_loop();
    start_mark(&a, 'a', 60000);
    sleep_in_turn_ns(1, NS_PER_MS); /* the loop has waited with a's time set */
    began = clock_mono_ns();
    start_mark(&b, 'b', 2);
    run_marks();
    CHECK_STR(order, "b");
    CHECK(clock_mono_ns() - began < UINT64_C(10000) * NS_PER_MS);
    timer_stop(&a.timer, loop);
    close_loop();
}

TEST(a_delay_beyond_all_time_is_a_timer_that_waits)
{
    struct mark a = { 0 }, b = { .last = true };

    open_loop();
    timer_init(&a.timer, on_mark);
    timer_start(&a.timer, loop, UINT64_MAX);
    start_mark(&b, 'b', 1);
    run_marks();
    CHECK_STR(order, "b");
    CHECK(timer_is_running(&a.timer));
    timer_stop(&a.timer, loop);
    close_loop();
}

struct burner {
    struct later later;
    struct timer timer;
    uint64_t     started_ns;
    uint64_t     fired_ns;
};

static void on_burner_timer(struct timer *timer)
{
    struct burner *burner = container_of(timer, struct burner, timer);

    burner->fired_ns = clock_mono_ns();
    loop_break(loop);
}

static void burn(struct later *later)
{
    struct burner *burner = container_of(later, struct burner, later);

    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 3 * NS_PER_MS }, NULL);
    burner->started_ns = clock_mono_ns();
    timer_start(&burner->timer, loop, 1);
}

TEST(a_sleep_begun_late_in_a_long_turn_is_not_cut_short)
{
    struct burner burner;

    open_loop();
    later_init(&burner.later, burn);
    timer_init(&burner.timer, on_burner_timer);
    loop_later(loop, &burner.later);
    loop_run(loop);
    CHECK(burner.fired_ns - burner.started_ns >= NS_PER_MS);
    close_loop();
}

enum { MANY = 10000, ROUNDS = 7 };

static struct sleeper many[MANY];
static unsigned       awake;

static void on_many(struct timer *timer)
{
    struct sleeper *sleeper = container_of(timer, struct sleeper, timer);

    if (--sleeper->left > 0)
        timer_start(timer, loop, 1);
    else if (++awake == MANY)
        loop_break(loop);
}

TEST(ten_thousand_sleepers_all_wake_as_often_as_they_sleep)
{
    open_loop();
    awake = 0;
    for (unsigned i = 0; i < MANY; i++) {
        many[i].left = ROUNDS;
        timer_init(&many[i].timer, on_many);
        timer_start(&many[i].timer, loop, 1);
    }
    loop_run(loop);
    CHECK_INT(awake, MANY);
    close_loop();
}

/* --- limits ---------------------------------------------------------------------------------- */

struct guest {
    struct limit        limit;
    struct limit_queue *queue;
    uint64_t            started_ns;
    uint64_t            ended_ns;
    struct guest       *stops;
    bool                again;
    bool                last;
};

static void on_limit(struct limit *limit)
{
    struct guest *guest = container_of(limit, struct guest, limit);

    guest->ended_ns = clock_mono_ns();
    if (guest->stops)
        limit_stop(&guest->stops->limit);
    if (guest->again) {
        guest->again = false;
        limit_start(limit, guest->queue);
    } else if (guest->last) {
        loop_break(loop);
    }
}

static void enter(struct guest *guest, struct limit_queue *queue)
{
    limit_init(&guest->limit);
    guest->queue      = queue;
    guest->started_ns = clock_mono_ns();
    limit_start(&guest->limit, queue);
}

TEST(limits_end_in_order_and_never_early)
{
    struct limit_queue queue;
    struct guest       a = { 0 }, b = { .last = true };

    open_loop();
    limit_queue_init(&queue, loop, 5, on_limit);
    enter(&a, &queue);
    enter(&b, &queue);
    loop_run(loop);
    CHECK(a.ended_ns - a.started_ns >= 5 * NS_PER_MS);
    CHECK(b.ended_ns >= a.ended_ns);
    limit_queue_fini(&queue);
    close_loop();
}

TEST(a_stopped_limit_does_not_end_and_a_restarted_one_ends_later)
{
    struct limit_queue queue;
    struct guest       a = { 0 }, b = { 0 }, c = { .again = true, .last = true };

    open_loop();
    limit_queue_init(&queue, loop, 2, on_limit);
    enter(&a, &queue);
    enter(&b, &queue);
    enter(&c, &queue);
    limit_stop(&a.limit);
    limit_stop(&a.limit);
    c.stops = &b; /* b stands before c and has ended by then */
    loop_run(loop);
    CHECK_INT(a.ended_ns, 0);
    CHECK(b.ended_ns > 0);
    CHECK(c.ended_ns - c.started_ns >= 4 * NS_PER_MS);
    limit_queue_fini(&queue);
    close_loop();
}

TEST(a_limit_stopped_by_the_one_before_it_does_not_end)
{
    struct limit_queue queue;
    struct guest       a = { 0 }, b = { 0 }, c = { .last = true };

    open_loop();
    limit_queue_init(&queue, loop, 2, on_limit);
    a.stops = &b;
    enter(&a, &queue);
    enter(&b, &queue);
    enter(&c, &queue);
    loop_run(loop);
    CHECK(a.ended_ns > 0);
    CHECK_INT(b.ended_ns, 0);
    limit_queue_fini(&queue);
    close_loop();
}

TEST(no_limit_means_that_nothing_is_started)
{
    struct limit_queue queue;
    struct guest       a = { 0 };

    open_loop();
    limit_queue_init(&queue, loop, 0, on_limit);
    enter(&a, &queue);
    CHECK(list_is_empty(&queue.running));
    CHECK(!timer_is_running(&queue.tick));
    limit_queue_fini(&queue);
    close_loop();
}

int main(void)
{
    return check_run();
}
