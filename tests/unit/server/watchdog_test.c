#include "server/watchdog.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "support/check.h"
#include "support/vm_fixture.h"

enum { WORKERS = 2, WARN_MS = 60 };

/* --- workers: a loop on a thread, which a message keeps busy until it is let go --------------- */

struct worker {
    struct loop   *loop;
    struct thread  thread;
    struct message hold; /* its turn lasts until `let_go` */
    sem_t          held, let_go;
    struct message end;
};

static struct worker workers[WORKERS];

static void hold(struct message *message)
{
    struct worker *worker = container_of(message, struct worker, hold);

    sem_post(&worker->held);
    sem_wait(&worker->let_go);
}

static void end(struct message *message)
{
    loop_break(container_of(message, struct worker, end)->loop);
}

static void drop(struct message *message)
{
}

static void worker_main(void *arg)
{
    loop_run(((struct worker *)arg)->loop);
}

static void hold_worker(unsigned index)
{
    struct worker *worker = &workers[index];

    worker->hold = (struct message){ .deliver = hold, .drop = drop };
    inbox_post(loop_inbox(worker->loop), &worker->hold);
    sem_wait(&worker->held);
}

static void let_go(unsigned index)
{
    sem_post(&workers[index].let_go);
}

/* What comes before its first wait, on a machine that is busy, is not to be taken for a late turn. */
static void await_sleep(unsigned index)
{
    hold_worker(index);
    let_go(index);
    while (loop_busy_since_ns(workers[index].loop) != 0)
        sched_yield();
}

static void start_workers(struct watched *watched)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];

        CHECK(loop_open(&worker->loop, NULL) == 0);
        sem_init(&worker->held, 0, 0);
        sem_init(&worker->let_go, 0, 0);
        CHECK(thread_start(&worker->thread, "worker", 0, worker_main, worker, NULL) == 0);
        await_sleep(i);
        watched[i] = (struct watched){ .loop = worker->loop };
    }
}

static void stop_workers(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];

        worker->end = (struct message){ .deliver = end, .drop = drop };
        inbox_post(loop_inbox(worker->loop), &worker->end);
        thread_join(&worker->thread);
        loop_close(worker->loop);
        sem_destroy(&worker->held);
        sem_destroy(&worker->let_go);
    }
}

/* --- what the watchdog says ------------------------------------------------------------------ */

struct findings {
    atomic_uint      late, back, slow, over, unstopped;
    _Atomic uint64_t busy_ms, slice_ms, over_ms, over_slice, unstopped_ms;
    sem_t            on_late, on_back, on_slow, on_over, on_unstopped;
};

static struct findings findings[WORKERS];

static void on_late(unsigned slot, void *arg)
{
    struct findings *found = &((struct findings *)arg)[slot];

    found->late++;
    sem_post(&found->on_late);
}

static void on_back(unsigned slot, uint64_t busy_ms, void *arg)
{
    struct findings *found = &((struct findings *)arg)[slot];

    found->back++;
    found->busy_ms = busy_ms;
    sem_post(&found->on_back);
}

static void on_slow(unsigned slot, uint64_t slice_ms, void *arg)
{
    struct findings *found = &((struct findings *)arg)[slot];

    found->slow++;
    found->slice_ms = slice_ms;
    sem_post(&found->on_slow);
}

static void on_over(unsigned slot, uint64_t slice, uint64_t slice_ms, void *arg)
{
    struct findings *found = &((struct findings *)arg)[slot];

    found->over++;
    found->over_slice = slice;
    found->over_ms    = slice_ms;
    sem_post(&found->on_over);
}

static void on_unstopped(unsigned slot, uint64_t slice_ms, void *arg)
{
    struct findings *found = &((struct findings *)arg)[slot];

    found->unstopped++;
    found->unstopped_ms = slice_ms;
    sem_post(&found->on_unstopped);
}

static const struct watchdog_ops ops = { on_late, on_back, on_slow, on_over, on_unstopped };

static struct watchdog *dog;

static void open_dog(const struct watched *watched, unsigned count, uint64_t warn_ms,
                     uint64_t stop_ms)
{
    struct watchdog_limits limits = { warn_ms, stop_ms };

    for (unsigned i = 0; i < WORKERS; i++) {
        memset(&findings[i], 0, sizeof(findings[i]));
        sem_init(&findings[i].on_late, 0, 0);
        sem_init(&findings[i].on_back, 0, 0);
        sem_init(&findings[i].on_slow, 0, 0);
        sem_init(&findings[i].on_over, 0, 0);
        sem_init(&findings[i].on_unstopped, 0, 0);
    }
    CHECK(watchdog_open(&dog, watched, count, &limits, &ops, findings, NULL) == 0);
}

static void open_limited(uint64_t warn_ms, uint64_t stop_ms)
{
    struct watched watched[WORKERS];

    start_workers(watched);
    open_dog(watched, WORKERS, warn_ms, stop_ms);
}

static void open_all(uint64_t warn_ms)
{
    open_limited(warn_ms, 0);
}

static void close_all(void)
{
    watchdog_close(dog);
    stop_workers();
}

/* One late turn from beginning to end. */
static void be_late(unsigned index)
{
    hold_worker(index);
    sem_wait(&findings[index].on_late);
    let_go(index);
    sem_wait(&findings[index].on_back);
}

TEST(a_worker_whose_turn_does_not_end_is_late_and_then_back)
{
    uint64_t began;

    open_all(0);
    began = clock_mono_ns();
    hold_worker(0);
    sem_wait(&findings[0].on_late);
    CHECK(clock_mono_ns() - began >= WATCHDOG_LATE_MS * NS_PER_MS);
    CHECK_INT(findings[0].back, 0);
    let_go(0);
    sem_wait(&findings[0].on_back);
    CHECK(findings[0].busy_ms >= WATCHDOG_LATE_MS);
    close_all();
    CHECK_INT(findings[0].late, 1);
    CHECK_INT(findings[0].back, 1);
}

TEST(a_worker_may_be_late_again_and_the_sleeping_one_never_is)
{
    open_all(0);
    for (unsigned i = 0; i < 3; i++)
        be_late(1);
    close_all();
    CHECK_INT(findings[1].late, 3);
    CHECK_INT(findings[1].back, 3);
    CHECK_INT(findings[0].late, 0);
}

TEST(a_slow_slice_is_told_once_with_its_length)
{
    open_all(WARN_MS);
    hold_worker(0);
    sem_wait(&findings[0].on_slow);
    CHECK(findings[0].slice_ms >= WARN_MS);
    for (unsigned i = 0; i < 2; i++)
        be_late(1); /* many looks pass */
    CHECK_INT(findings[0].slow, 1);
    let_go(0);
    sem_wait(&findings[0].on_back);

    hold_worker(0); /* another slice, another warning */
    sem_wait(&findings[0].on_slow);
    let_go(0);
    sem_wait(&findings[0].on_back);
    close_all();
    CHECK_INT(findings[0].slow, 2);
    CHECK_INT(findings[0].late, 2);
}

TEST(without_a_limit_no_slice_is_slow)
{
    open_all(0);
    be_late(0);
    hold_worker(0);
    for (unsigned i = 0; i < 4; i++)
        be_late(1); /* 80 ms at least */
    let_go(0);
    close_all();
    CHECK_INT(findings[0].slow, 0);
}

TEST(a_slice_over_its_limit_is_told_at_each_look_until_it_ends)
{
    unsigned told;

    open_limited(0, WARN_MS);
    hold_worker(0);
    for (int looks = 0; looks < 5; looks++)
        sem_wait(&findings[0].on_over);
    CHECK(findings[0].over_ms >= WARN_MS);
    let_go(0);
    sem_wait(&findings[0].on_back);
    told = findings[0].over;
    for (unsigned i = 0; i < 2; i++)
        be_late(1); /* many looks pass */
    CHECK_INT(findings[0].over, told);
    CHECK_INT(findings[0].slow, 0);
    close_all();
}

TEST(a_slice_that_cannot_be_stopped_is_told_once)
{
    open_limited(0, WARN_MS);
    hold_worker(0);
    sem_wait(&findings[0].on_unstopped);
    CHECK(findings[0].unstopped_ms >= WARN_MS + WATCHDOG_STOP_MS);
    for (unsigned i = 0; i < 2; i++)
        be_late(1);
    CHECK_INT(findings[0].unstopped, 1);
    let_go(0);
    sem_wait(&findings[0].on_back);
    close_all();
}

TEST(a_watchdog_closes_while_a_worker_is_late)
{
    open_all(0);
    hold_worker(0);
    sem_wait(&findings[0].on_late);
    watchdog_close(dog);
    let_go(0);
    stop_workers();
    CHECK_INT(findings[0].back, 0);
    watchdog_close(NULL);
}

/* --- with a scheduler ------------------------------------------------------------------------ */

/* Stays within its slice until the watchdog has spoken of it. */
static int wait_until_slow(lua_State *L)
{
    sem_wait(&findings[0].on_slow);
    return 0;
}

/* One slice of 90 ms. */
static int work(lua_State *L)
{
    struct timespec ts = { .tv_nsec = 90 * NS_PER_MS };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    return 0;
}

/* wait_until_over() -> whether the slice that is to be stopped is this one */
static int wait_until_over(lua_State *L)
{
    sem_wait(&findings[0].on_over);
    lua_pushboolean(L, findings[0].over_slice == sched_slices(vm_of(L)->sched));
    return 1;
}

static void open_lua(struct fixture *f, uint64_t warn_ms, uint64_t stop_ms)
{
    struct watched watched;

    fixture_open(f);
    lua_register(f->vm->L, "wait_until_slow", wait_until_slow);
    lua_register(f->vm->L, "wait_until_over", wait_until_over);
    lua_register(f->vm->L, "work", work);
    watched = (struct watched){ .loop = f->loop, .sched = f->sched };
    open_dog(&watched, 1, warn_ms, stop_ms);
}

TEST(a_slow_task_is_told_while_it_runs)
{
    struct fixture f;

    open_lua(&f, WARN_MS, 0);
    fixture_start(&f, "sleep(1) wait_until_slow() return 'done'");
    fixture_run(&f);
    watchdog_close(dog);
    CHECK_STR(f.text, "done");
    CHECK_INT(findings[0].slow, 1);
    fixture_close(&f);
}

TEST(the_slice_to_stop_is_told_by_its_number)
{
    struct fixture f;

    open_lua(&f, 0, WARN_MS);
    fixture_start(&f, "sleep(1) return wait_until_over() and 'mine'");
    fixture_run(&f);
    watchdog_close(dog);
    CHECK_STR(f.text, "mine");
    fixture_close(&f);
}

/* A late turn, but none of its tasks is to blame. */
TEST(many_short_slices_in_one_long_turn_are_not_slow)
{
    struct fixture f;

    open_lua(&f, 2000, 2000);
    for (unsigned i = 0; i < 25; i++)
        fixture_start(&f, "sleep(1) work()");
    fixture_run(&f);
    watchdog_close(dog);
    CHECK_INT(f.returned, 25);
    CHECK(findings[0].late > 0);
    CHECK_INT(findings[0].slow, 0);
    CHECK_INT(findings[0].over, 0);
    fixture_close(&f);
}

int main(void)
{
    return check_run();
}
