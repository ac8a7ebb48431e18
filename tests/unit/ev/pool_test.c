#include "ev/pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop *loop;
static struct pool *pool;

static void open_pool(void)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
    CHECK(pool_open(&pool, &err) == 0);
}

static void close_pool(void)
{
    pool_close(pool);
    pool = NULL;
    loop_close(loop);
    loop = NULL;
}

static struct lane *open_lane(unsigned threads, unsigned queue_max)
{
    struct lane *lane;
    struct err   err;

    CHECK(lane_open(&lane, pool, "test", threads, queue_max, &err) == 0);
    return lane;
}

/* --- a gate: what a test waits for instead of sleeping ---------------------------------------- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    unsigned        inside; /* jobs that have come to the gate */
    bool            open;
};

static struct gate gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };

static void gate_reset(void)
{
    gate.inside = 0;
    gate.open   = false;
}

static void gate_pass(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.inside++;
    pthread_cond_broadcast(&gate.moved);
    while (!gate.open)
        pthread_cond_wait(&gate.moved, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_await(unsigned inside)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.inside < inside)
        pthread_cond_wait(&gate.moved, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.moved);
    pthread_mutex_unlock(&gate.lock);
}

/* --- jobs ------------------------------------------------------------------------------------ */

struct work {
    struct job  job;
    unsigned    input, output;
    pthread_t   ran_on;
    atomic_uint runs, dones, drops;
    bool        saw_cancel;
};

static unsigned done_count, done_wanted;

static void run_square(struct job *job)
{
    struct work *work = container_of(job, struct work, job);

    work->ran_on = pthread_self();
    work->output = work->input * work->input;
    work->runs++;
}

static void run_gated(struct job *job)
{
    struct work *work = container_of(job, struct work, job);

    work->runs++;
    gate_pass();
    work->saw_cancel = atomic_load(&job->cancelled);
}

static void on_done(struct job *job)
{
    container_of(job, struct work, job)->dones++;
    if (++done_count == done_wanted)
        loop_break(loop);
}

static void on_drop(struct job *job)
{
    container_of(job, struct work, job)->drops++;
}

static void work_init(struct work *work, void (*run)(struct job *job))
{
    *work = (struct work){ .job = { .run = run, .done = on_done, .drop = on_drop } };
}

static void await_done(unsigned wanted)
{
    done_wanted = wanted;
    if (done_count < wanted)
        loop_run(loop);
    CHECK_INT(done_count, wanted);
}

TEST(a_job_runs_on_another_thread_and_comes_home)
{
    struct work  work;
    struct lane *lane;

    open_pool();
    done_count = 0;
    lane       = open_lane(1, 4);
    work_init(&work, run_square);
    work.input = 12;
    CHECK(lane_submit(lane, &work.job, loop_inbox(loop)) == 0);
    await_done(1);
    CHECK_INT(work.output, 144);
    CHECK(!pthread_equal(work.ran_on, pthread_self()));
    CHECK_INT(work.job.state, JOB_IDLE);
    CHECK(lane_submit(lane, &work.job, loop_inbox(loop)) == 0); /* it may be used again */
    await_done(2);
    CHECK_INT(work.runs, 2);
    close_pool();
}

TEST(a_lane_runs_as_many_at_once_as_it_has_threads)
{
    struct work  works[3];
    struct lane *lane;

    open_pool();
    gate_reset();
    done_count = 0;
    lane       = open_lane(3, 8);
    for (unsigned i = 0; i < 3; i++) {
        work_init(&works[i], run_gated);
        CHECK(lane_submit(lane, &works[i].job, loop_inbox(loop)) == 0);
    }
    gate_await(3); /* would never come with fewer threads */
    gate_open();
    await_done(3);
    close_pool();
}

TEST(a_full_queue_refuses_and_other_lanes_go_on)
{
    struct work  running, queued, refused, elsewhere;
    struct lane *lane, *other;

    open_pool();
    gate_reset();
    done_count = 0;
    lane       = open_lane(1, 1);
    other      = open_lane(1, 1);
    work_init(&running, run_gated);
    work_init(&queued, run_gated);
    work_init(&refused, run_gated);
    work_init(&elsewhere, run_square);
    CHECK(lane_submit(lane, &running.job, loop_inbox(loop)) == 0);
    gate_await(1);
    CHECK(lane_submit(lane, &queued.job, loop_inbox(loop)) == 0);
    CHECK_INT(lane_submit(lane, &refused.job, loop_inbox(loop)), ERR_BUSY);
    CHECK_INT(refused.job.state, JOB_IDLE);

    CHECK(lane_submit(other, &elsewhere.job, loop_inbox(loop)) == 0);
    await_done(1);
    CHECK_INT(elsewhere.dones, 1);
    gate_open();
    await_done(3);
    CHECK_INT(refused.runs + refused.dones + refused.drops, 0);
    close_pool();
}

TEST(a_queued_job_is_taken_out_and_a_running_one_is_told)
{
    struct work  running, queued;
    struct lane *lane;

    open_pool();
    gate_reset();
    done_count = 0;
    lane       = open_lane(1, 4);
    work_init(&running, run_gated);
    work_init(&queued, run_gated);
    CHECK(lane_submit(lane, &running.job, loop_inbox(loop)) == 0);
    gate_await(1);
    CHECK(lane_submit(lane, &queued.job, loop_inbox(loop)) == 0);
    CHECK(job_cancel(&queued.job));
    CHECK(!job_cancel(&running.job));
    gate_open();
    await_done(1);
    CHECK(running.saw_cancel);
    CHECK_INT(queued.runs + queued.dones + queued.drops, 0);
    close_pool();
}

static void on_drop_open_gate(struct job *job)
{
    on_drop(job);
    gate_open();
}

/* The running job ends only once the queued one was dropped: else pool_close() would not return. */
TEST(closing_the_pool_drops_what_is_queued_and_waits_for_what_runs)
{
    struct work  running, queued;
    struct lane *lane;

    open_pool();
    gate_reset();
    lane = open_lane(1, 4);
    work_init(&running, run_gated);
    work_init(&queued, run_square);
    queued.job.drop = on_drop_open_gate;
    CHECK(lane_submit(lane, &running.job, loop_inbox(loop)) == 0);
    gate_await(1);
    CHECK(lane_submit(lane, &queued.job, loop_inbox(loop)) == 0);
    inbox_close(loop_inbox(loop));
    close_pool();
    CHECK_INT(running.runs, 1);
    CHECK_INT(running.drops, 1); /* its home had closed */
    CHECK_INT(queued.runs + queued.dones, 0);
    CHECK_INT(queued.drops, 1);
}

enum { RACES = 3000, RACE_WORKS = 8 };

/* Each job is either taken out, or it runs and comes home: never both, never neither. */
TEST(cancelling_races_with_running_and_the_job_ends_exactly_once)
{
    static struct work works[RACE_WORKS];
    struct lane       *lane;
    unsigned           taken = 0, wanted = 0;

    open_pool();
    done_count = 0;
    lane       = open_lane(2, RACE_WORKS);
    for (unsigned race = 0; race < RACES; race++) {
        for (unsigned i = 0; i < RACE_WORKS; i++) {
            work_init(&works[i], run_square);
            CHECK(lane_submit(lane, &works[i].job, loop_inbox(loop)) == 0);
        }
        for (unsigned i = 0; i < RACE_WORKS; i++) {
            if (job_cancel(&works[i].job))
                taken++;
            else
                wanted++;
        }
        await_done(wanted);
        for (unsigned i = 0; i < RACE_WORKS; i++)
            CHECK_INT(works[i].dones, works[i].runs);
    }
    CHECK_INT(taken + wanted, RACES * RACE_WORKS);
    close_pool();
}

static void run_read_mask(struct job *job)
{
    struct work *work = container_of(job, struct work, job);
    sigset_t     set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    work->output = (unsigned)(sigismember(&set, SIGTERM) * 4 + sigismember(&set, SIGURG) * 2 +
                              sigismember(&set, SIGSEGV));
}

TEST(pool_threads_leave_signals_to_main)
{
    struct work work;

    open_pool();
    done_count = 0;
    work_init(&work, run_read_mask);
    CHECK(lane_submit(open_lane(1, 1), &work.job, loop_inbox(loop)) == 0);
    await_done(1);
    CHECK_INT(work.output, 4);
    close_pool();
}

TEST(a_lane_counts_its_jobs)
{
    static struct work works[3];
    struct lane_stats  stats;
    struct lane       *lane;

    open_pool();
    done_count = 0;
    lane       = open_lane(1, 3);
    for (unsigned i = 0; i < 3; i++) {
        work_init(&works[i], run_square);
        CHECK(lane_submit(lane, &works[i].job, loop_inbox(loop)) == 0);
    }
    await_done(3);
    do
        lane_stats(lane, &stats);
    while (stats.running); /* a job is home before its thread has counted it */
    CHECK_INT(stats.done, 3);
    CHECK_INT(stats.queued, 0);
    CHECK_INT(stats.threads, 1);
    CHECK_INT(stats.refused, 0);
    close_pool();
}

int main(void)
{
    return check_run();
}
