#include "load/load_pace.h"

#include "base/err.h"
#include "support/check.h"

enum { MS = 1000000 };

static struct loop     *loop;
static struct load_pace pace;
static unsigned         calls;

static void on_due(struct load_pace *self)
{
    calls++;
    loop_break(loop);
}

static void open_at(double rate, unsigned thread, unsigned threads, uint64_t start_ns)
{
    struct err err;

    calls = 0;
    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(load_pace_open(&pace, loop, rate, thread, threads, start_ns, on_due, &err), 0);
}

static void done(void)
{
    load_pace_close(&pace);
    loop_close(loop);
}

TEST(moments_stand_evenly_from_the_start)
{
    uint64_t planned;

    open_at(1000, 0, 1, 5 * MS);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(load_pace_take(&pace, 1000 * MS, &planned));
        CHECK_INT(planned, (5 + i) * MS);
    }
    done();
}

TEST(threads_share_one_schedule)
{
    uint64_t planned;

    for (unsigned thread = 0; thread < 4; thread++) {
        open_at(1000, thread, 4, 0);
        for (uint64_t i = 0; i < 10; i++) {
            CHECK(load_pace_take(&pace, 1000 * MS, &planned));
            CHECK_INT(planned, (thread + 4 * i) * MS);
        }
        done();
    }
}

TEST(a_moment_is_not_taken_before_it_has_come)
{
    uint64_t planned;

    open_at(1000, 0, 1, 5 * MS);
    CHECK(!load_pace_take(&pace, 5 * MS - 1, &planned));
    CHECK(load_pace_take(&pace, 5 * MS, &planned));
    CHECK(!load_pace_take(&pace, 6 * MS - 1, &planned));
    done();
}

TEST(a_rate_that_divides_no_second_does_not_drift)
{
    uint64_t planned = 0;

    open_at(3, 0, 1, 0);
    for (int i = 0; i < 3 * 3600 + 1; i++)
        CHECK(load_pace_take(&pace, UINT64_MAX / 2, &planned));
    CHECK(planned > UINT64_C(3599999) * MS && planned < UINT64_C(3600001) * MS);
    done();
}

TEST(the_backlog_is_what_has_come_and_was_not_taken)
{
    uint64_t planned;

    open_at(1000, 0, 1, 5 * MS);
    CHECK_INT(load_pace_backlog(&pace, 5 * MS - 1), 0);
    CHECK_INT(load_pace_backlog(&pace, 5 * MS), 1);
    CHECK_INT(load_pace_backlog(&pace, 15 * MS), 11);
    CHECK(load_pace_take(&pace, 15 * MS, &planned));
    CHECK_INT(load_pace_backlog(&pace, 15 * MS), 10);
    done();
}

TEST(a_moment_that_has_passed_calls_at_once)
{
    open_at(1000, 0, 1, 5 * MS);
    load_pace_wait(&pace);
    loop_run(loop);
    CHECK_INT(calls, 1);
    done();
}

int main(void)
{
    return check_run();
}
