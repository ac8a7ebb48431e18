#include "ev/advance.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/timer.h"
#include "support/check.h"

static struct loop   *loop;
static struct advance advance;

static void on_done(void *arg)
{
    loop_break(loop);
}

static void open_held(void)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
    loop_hold_clock(loop);
    advance_init(&advance, loop, NULL, on_done, NULL);
}

static void close_all(void)
{
    advance_stop(&advance);
    loop_close(loop);
}

static void advance_ms(uint64_t ms)
{
    advance_start(&advance, ms * NS_PER_MS);
    loop_run(loop);
}

/* --- timers ------------------------------------------------------------------------------------ */

struct ring {
    struct timer timer;
    uint64_t     at_ms; /* loop time at which it fired; 0: not yet */
    unsigned     order;
};

static unsigned rung;

static void on_ring(struct timer *timer)
{
    struct ring *ring = container_of(timer, struct ring, timer);

    ring->at_ms = loop_now_ms(loop);
    ring->order = ++rung;
}

static void start(struct ring *ring, uint64_t ms)
{
    *ring = (struct ring){ 0 };
    timer_init(&ring->timer, on_ring);
    timer_start(&ring->timer, loop, ms);
}

TEST(timers_fire_in_order_at_the_time_they_are_due_at)
{
    static const uint64_t DELAYS[] = { 86400000, 3, 64, 4096, 65, 1 };
    static const unsigned ORDER[]  = { 6, 2, 3, 5, 4, 1 };
    struct ring           rings[6];
    uint64_t              began;

    open_held();
    rung  = 0;
    began = loop_now_ms(loop);
    for (unsigned i = 0; i < 6; i++)
        start(&rings[i], DELAYS[i]);
    advance_ms(86400000);
    for (unsigned i = 0; i < 6; i++) {
        CHECK(rings[i].order == ORDER[i]);
        CHECK(rings[i].at_ms == began + DELAYS[i]);
    }
    close_all();
}

TEST(what_is_due_later_does_not_fire)
{
    struct ring ring;

    open_held();
    start(&ring, 1000);
    advance_ms(999);
    CHECK(ring.at_ms == 0);
    advance_ms(1);
    CHECK(ring.at_ms == loop_now_ms(loop));
    close_all();
}

static void on_limit(struct limit *limit)
{
    rung++;
}

TEST(limits_end_to_the_millisecond)
{
    struct limit_queue queue;
    struct limit       first, second;

    open_held();
    rung = 0;
    limit_queue_init(&queue, loop, 30000, on_limit);
    limit_init(&first);
    limit_init(&second);
    limit_start(&first, &queue);
    advance_ms(5);
    limit_start(&second, &queue);
    advance_ms(29994);
    CHECK(rung == 0);
    advance_ms(1);
    CHECK(rung == 1);
    advance_ms(5);
    CHECK(rung == 2);
    limit_queue_fini(&queue);
    close_all();
}

/* --- the clocks ---------------------------------------------------------------------------------- */

TEST(both_clocks_stand_and_move_together)
{
    uint64_t mono;
    int64_t  wall;

    open_held();
    mono = loop_clock_ns(loop);
    wall = loop_wall_ms(loop);
    usleep(3000);
    CHECK(loop_clock_ns(loop) == mono);
    CHECK(loop_wall_ms(loop) == wall);
    advance_ms(12345);
    CHECK(loop_clock_ns(loop) == mono + UINT64_C(12345) * NS_PER_MS);
    CHECK(loop_wall_ms(loop) == wall + 12345);
    close_all();
}

static void on_break(struct timer *timer)
{
    loop_break(loop);
}

TEST(a_released_clock_runs_on_from_where_it_stands_and_timers_with_it)
{
    struct timer timer;
    uint64_t     held;

    for (unsigned ms = 0; ms <= 1000; ms += 1000) { /* behind the kernel's, and ahead of it */
        open_held();
        usleep(2000);
        advance_ms(ms);
        held = loop_clock_ns(loop);
        loop_release_clock(loop);
        CHECK(loop_clock_ns(loop) >= held);
        CHECK(loop_clock_ns(loop) - held < UINT64_C(10) * NS_PER_S);
        CHECK(llabs(loop_wall_ms(loop) - clock_wall_ms()) < 1000);
        timer_init(&timer, on_break);
        timer_start(&timer, loop, 2);
        loop_run(loop);
        CHECK(loop_clock_ns(loop) >= held + 2 * NS_PER_MS);
        close_all();
    }
}

/* --- what is ready comes first ------------------------------------------------------------------ */

static int         ends[2];
static uint64_t    read_at_ms;
static struct io   reader;
static struct ring late;

static void on_readable(int fd, short what, void *arg)
{
    char byte;

    if (read(fd, &byte, 1) == 1)
        read_at_ms = loop_now_ms(loop);
}

static void on_write(struct timer *timer)
{
    CHECK(write(ends[1], "x", 1) == 1);
}

TEST(bytes_on_the_way_arrive_before_time_goes_on)
{
    struct timer timer;
    uint64_t     began;

    open_held();
    began = loop_now_ms(loop);
    CHECK(pipe(ends) == 0);
    CHECK(io_start_level(&reader, loop, ends[0], on_readable, NULL) == 0);
    timer_init(&timer, on_write);
    timer_start(&timer, loop, 10);
    start(&late, 1000);
    advance_ms(5000);
    CHECK(read_at_ms == began + 10);
    io_stop(&reader);
    close(ends[0]);
    close(ends[1]);
    close_all();
}

static unsigned busy_left;

static bool is_busy(void *arg)
{
    return busy_left > 0 && busy_left-- > 0;
}

TEST(threads_that_work_are_waited_for)
{
    open_held();
    advance_init(&advance, loop, is_busy, on_done, NULL);
    busy_left = 5;
    advance_ms(1);
    CHECK(busy_left == 0);
    close_all();
}

int main(void)
{
    return check_run();
}
