#include "ev/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/inbox.h"
#include "ev/timer.h"
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

/* --- descriptors ---------------------------------------------------------------------------- */

struct seen {
    unsigned calls;
    short    what; /* all of them together */
    bool     stop; /* break the loop */
};

static void on_seen(int fd, short what, void *arg)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->what |= what;
    if (seen->stop)
        loop_break(loop);
}

static void on_timer_break(struct timer *timer)
{
    loop_break(loop);
}

static void run_for_ms(unsigned ms)
{
    struct timer timer;

    timer_init(&timer, on_timer_break);
    timer_start(&timer, loop, ms);
    loop_run(loop);
    timer_stop(&timer, loop);
}

/* Until it has been called so often in all, and a while longer: it may not be called more often. */
static void run_to_calls(struct seen *seen, unsigned calls)
{
    seen->stop = true;
    while (seen->calls < calls)
        loop_run(loop);
    seen->stop = false;
    run_for_ms(5);
}

TEST(a_level_io_calls_until_its_bytes_are_read)
{
    int         pair[2];
    struct io   io   = { 0 };
    struct seen seen = { .stop = true };

    open_loop();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(io_start_level(&io, loop, pair[0], on_seen, &seen) == 0);
    CHECK(write(pair[1], "x", 1) == 1);
    loop_run(loop);
    loop_run(loop);
    CHECK_INT(seen.calls, 2);
    CHECK(seen.what & IO_READ);
    io_stop(&io);
    io_stop(&io);
    close(pair[0]);
    close(pair[1]);
    close_loop();
}

TEST(an_edge_io_tells_of_each_change_once)
{
    int         pair[2];
    struct io   io   = { 0 };
    struct seen seen = { 0 };

    open_loop();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(io_start_edge(&io, loop, pair[0], on_seen, &seen) == 0);
    run_to_calls(&seen, 1);
    CHECK_INT(seen.calls, 1); /* writable from the start */
    CHECK(seen.what & IO_WRITE);
    CHECK(!(seen.what & IO_READ));

    CHECK(write(pair[1], "x", 1) == 1);
    run_to_calls(&seen, 2);
    CHECK_INT(seen.calls, 2);
    CHECK(seen.what & IO_READ);
    CHECK(!(seen.what & IO_CLOSED));

    shutdown(pair[1], SHUT_WR);
    run_to_calls(&seen, 3);
    CHECK_INT(seen.calls, 3);
    CHECK(seen.what & IO_CLOSED);
    io_stop(&io);
    close(pair[0]);
    close(pair[1]);
    close_loop();
}

TEST(a_file_that_cannot_be_polled_is_an_error)
{
    struct io   io   = { 0 };
    struct seen seen = { 0 };
    FILE       *file = tmpfile();

    open_loop();
    CHECK_INT(io_start_level(&io, loop, fileno(file), on_seen, &seen), ERR_SYSTEM);
    io_stop(&io);
    fclose(file);
    close_loop();
}

TEST(an_io_that_was_never_started_may_be_stopped)
{
    struct io io = { 0 };

    io_stop(&io);
    CHECK(io.loop == NULL);
}

struct rival {
    struct io     io;
    struct rival *other;
    unsigned     *calls;
};

static void on_rival(int fd, short what, void *arg)
{
    struct rival *rival = arg;

    ++*rival->calls;
    io_stop(&rival->other->io);
    loop_break(loop);
}

TEST(an_io_stopped_by_another_of_the_same_turn_is_not_called)
{
    int          pairs[2][2];
    unsigned     calls = 0;
    struct rival rivals[2];

    open_loop();
    for (int i = 0; i < 2; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) == 0);
        CHECK(write(pairs[i][1], "x", 1) == 1);
        rivals[i] = (struct rival){ .other = &rivals[!i], .calls = &calls };
        CHECK(io_start_level(&rivals[i].io, loop, pairs[i][0], on_rival, &rivals[i]) == 0);
    }
    loop_run(loop);
    CHECK_INT(calls, 1);
    for (int i = 0; i < 2; i++) {
        io_stop(&rivals[i].io);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    close_loop();
}

/* --- work put off --------------------------------------------------------------------------- */

static char  order[64];
static char *order_at;

struct step {
    struct later later;
    char         name;
    unsigned     again; /* asks for itself so many times more */
    struct step *cancels;
};

static void run_step(struct later *later)
{
    struct step *step = container_of(later, struct step, later);

    *order_at++ = step->name;
    if (step->cancels)
        later_cancel(&step->cancels->later);
    if (step->again > 0) {
        step->again--;
        loop_later(loop, later);
    }
}

static void ask(struct step *step, char name)
{
    later_init(&step->later, run_step);
    step->name = name;
    loop_later(loop, &step->later);
}

static void run_steps(void)
{
    order_at = order;
    run_for_ms(1);
    *order_at = '\0';
}

TEST(work_put_off_runs_once_in_the_order_asked_for)
{
    struct step a = { 0 }, b = { 0 }, c = { 0 };

    open_loop();
    ask(&a, 'a');
    ask(&b, 'b');
    ask(&c, 'c');
    loop_later(loop, &a.later);
    run_steps();
    CHECK_STR(order, "abc");
    close_loop();
}

TEST(work_that_asks_for_itself_runs_in_the_next_round)
{
    struct step a = { .again = 2 }, b = { .again = 1 };

    open_loop();
    ask(&a, 'a');
    ask(&b, 'b');
    run_steps();
    CHECK_STR(order, "ababa");
    close_loop();
}

TEST(work_cancelled_in_its_own_round_does_not_run)
{
    struct step a = { 0 }, b = { 0 };

    open_loop();
    a.cancels = &b;
    ask(&a, 'a');
    ask(&b, 'b');
    run_steps();
    CHECK_STR(order, "a");
    close_loop();
}

struct endless {
    struct later later;
    unsigned     rounds;
};

static void run_endless(struct later *later)
{
    container_of(later, struct endless, later)->rounds++;
    loop_later(loop, later);
}

TEST(endless_work_starves_neither_sockets_nor_timers)
{
    int            pair[2];
    struct io      io      = { 0 };
    struct seen    seen    = { .stop = true };
    struct endless endless = { 0 };

    open_loop();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(io_start_level(&io, loop, pair[0], on_seen, &seen) == 0);
    later_init(&endless.later, run_endless);
    loop_later(loop, &endless.later);
    while (endless.rounds <=
           64) /* of one turn; a machine that is busy may take all the time of one run */
        run_for_ms(2);
    CHECK(write(pair[1], "x", 1) == 1);
    loop_run(loop);
    CHECK_INT(seen.calls, 1);
    later_cancel(&endless.later);
    io_stop(&io);
    close(pair[0]);
    close(pair[1]);
    close_loop();
}

/* --- hooks, time, heartbeat ----------------------------------------------------------------- */

struct counter {
    struct loop_hook hook;
    unsigned         calls;
    struct later    *asks_for;  /* once */
    unsigned         breaks_at; /* that call ends the run */
};

static void count(struct loop_hook *hook)
{
    struct counter *counter = container_of(hook, struct counter, hook);

    counter->calls++;
    if (counter->asks_for)
        loop_later(loop, counter->asks_for);
    counter->asks_for = NULL;
    if (counter->calls == counter->breaks_at)
        loop_break(loop);
}

TEST(the_turn_hook_runs_in_every_turn_and_the_idle_hook_before_each_wait)
{
    struct counter turns = { 0 }, idles = { 0 };
    uint64_t       before;

    open_loop();
    loop_hook_init(&turns.hook, count);
    loop_hook_init(&idles.hook, count);
    loop_on_turn(loop, &turns.hook);
    loop_on_idle(loop, &idles.hook);
    before = loop_turns(loop);
    run_for_ms(2);
    CHECK(turns.calls > 0);
    CHECK(idles.calls > 0);
    CHECK_INT(turns.calls, loop_turns(loop) - before);

    loop_hook_remove(&turns.hook);
    loop_hook_remove(&idles.hook);
    loop_hook_remove(&idles.hook);
    turns.calls = idles.calls = 0;
    run_for_ms(1);
    CHECK_INT(turns.calls + idles.calls, 0);
    close_loop();
}

TEST(work_asked_for_by_the_idle_hook_runs_before_the_wait)
{
    struct counter idles = { 0 };
    struct step    step  = { 0 };

    open_loop();
    later_init(&step.later, run_step);
    step.name       = 'i';
    idles.asks_for  = &step.later;
    idles.breaks_at = 2; /* once more before the wait itself */
    loop_hook_init(&idles.hook, count);
    loop_on_idle(loop, &idles.hook);
    order_at = order;
    run_for_ms(10000);
    *order_at = '\0';
    CHECK_STR(order, "i");
    CHECK_INT(idles.calls, 2);
    loop_hook_remove(&idles.hook);
    close_loop();
}

static void spin_for_ns(uint64_t ns)
{
    uint64_t end = clock_mono_ns() + ns;

    while (clock_mono_ns() < end)
        continue;
}

struct look {
    struct later later;
    uint64_t     now_before, now_after, busy_since;
};

static void look_around(struct later *later)
{
    struct look *look = container_of(later, struct look, later);

    look->now_before = loop_now_ns(loop);
    look->busy_since = loop_busy_since_ns(loop);
    spin_for_ns(NS_PER_MS / 2);
    look->now_after = loop_now_ns(loop);
}

TEST(time_stands_still_within_a_turn_and_the_heartbeat_shows_its_beginning)
{
    struct look look;

    open_loop();
    later_init(&look.later, look_around);
    loop_later(loop, &look.later);
    run_for_ms(1);
    CHECK(look.now_before == look.now_after);
    CHECK(look.busy_since == look.now_before);
    CHECK(loop_now_ms(loop) == loop_now_ns(loop) / NS_PER_MS);
    CHECK_INT(loop_busy_since_ns(loop), 0);
    close_loop();
}

TEST(a_break_before_the_run_ends_it_at_once)
{
    uint64_t turns;

    open_loop();
    turns = loop_turns(loop);
    loop_break(loop);
    loop_run(loop);
    CHECK_INT(loop_turns(loop), turns);
    close_loop();
}

/* --- another thread looks at the heartbeat --------------------------------------------------- */

struct breaker {
    struct message message;
};

static void deliver_break(struct message *message)
{
    loop_break(loop);
}

static void drop_break(struct message *message)
{
}

static void *watch_until_asleep(void *arg)
{
    struct breaker *breaker = arg;

    while (loop_turns(loop) == 0 || loop_busy_since_ns(loop) != 0)
        sched_yield();
    inbox_post(loop_inbox(loop), &breaker->message);
    return NULL;
}

TEST(another_thread_sees_the_loop_asleep_and_breaks_it_by_a_message)
{
    struct breaker breaker = { .message = { .deliver = deliver_break, .drop = drop_break } };
    struct step    step    = { 0 };
    pthread_t      thread;

    open_loop();
    order_at = order;
    ask(&step, 'x'); /* so that there is a first turn without a wait */
    CHECK(pthread_create(&thread, NULL, watch_until_asleep, &breaker) == 0);
    loop_run(loop);
    pthread_join(thread, NULL);
    CHECK(loop_turns(loop) >= 2);
    close_loop();
}

int main(void)
{
    return check_run();
}
