// needs: postgres
#include "data/pg.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns.h"
#include "support/check.h"

enum { PATIENCE_MS = 20000, STEP_MS = 5 };

static struct loop      *loop;
static struct dns       *dns;
static struct pg        *pg;
static struct pg_worker *worker;

/* --- a process with a worker --------------------------------------------------------------------- */

static const char *server_url(void)
{
    const char *url = getenv("TEST_POSTGRES_URL");

    if (!url)
        SKIP("there is no TEST_POSTGRES_URL");
    return url;
}

static void open_process(void)
{
    server_url();
    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(dns_open(&dns, loop, NULL, NULL), 0);
    CHECK_INT(pg_open(&pg, NULL), 0);
    CHECK_INT(pg_worker_open(&worker, pg, loop, dns, NULL), 0);
}

static void close_process(void)
{
    inbox_close(loop_inbox(loop));
    pg_worker_close(worker);
    pg_close(pg);
    dns_close(dns);
    loop_close(loop);
}

static struct pg_pool *pool_of(const char *url, unsigned connections, unsigned waiting,
                               uint64_t timeout_ms)
{
    struct pg_options options = { url, connections, waiting, timeout_ms };
    struct pg_pool   *pool;

    CHECK_INT(pg_pool_open(&pool, worker, &options, NULL), 0);
    return pool;
}

/* --- calls ---------------------------------------------------------------------------------------- */

struct probe {
    struct pg_call call;
    unsigned       order; /* 0: not done */
};

static unsigned done_count;

static void on_done(struct pg_call *call)
{
    container_of(call, struct probe, call)->order = ++done_count;
    loop_break(loop);
}

static void prepare(struct probe *probe, enum pg_verb verb, const char *sql)
{
    pg_call_init(&probe->call, verb);
    probe->order     = 0;
    probe->call.done = on_done;
    probe->call.own  = verb != PG_RUN;
    buf_add_str(&probe->call.sql, str_of(sql));
}

static void on_alarm(struct timer *timer)
{
    fprintf(stderr, "nothing came within %d ms\n", PATIENCE_MS);
    abort();
}

static void await(struct probe *probe)
{
    struct timer alarm;

    timer_init(&alarm, on_alarm);
    timer_start(&alarm, loop, PATIENCE_MS);
    while (!probe->order)
        loop_run(loop);
    timer_stop(&alarm, loop);
}

static void on_pause(struct timer *timer)
{
    loop_break(loop);
}

/* Lets the loop turn for a while. */
static void turn_for(uint64_t ms)
{
    struct timer pause;

    timer_init(&pause, on_pause);
    timer_start(&pause, loop, ms);
    while (timer_is_running(&pause))
        loop_run(loop);
}

static void run(struct probe *probe, struct pg_pool *pool, struct pg_lease *lease, const char *sql)
{
    prepare(probe, PG_RUN, sql);
    probe->call.lease = lease;
    CHECK_INT(pg_start(&probe->call, pool), 0);
    await(probe);
}

/* The only cell of a statement that succeeds. */
static const char *ask(struct pg_pool *pool, const char *sql)
{
    static char  answer[200];
    struct probe probe;
    struct str   text = STR_NONE;

    run(&probe, pool, NULL, sql);
    CHECK_STR(probe.call.fault.code ? probe.call.fault.text : "", "");
    CHECK(pg_rows_cell(&probe.call.rows, 0, 0, &text));
    snprintf(answer, sizeof(answer), "%.*s", STR_ARG(text));
    pg_call_fini(&probe.call);
    return answer;
}

static struct pg_lease *begin(struct pg_pool *pool, const char *sql)
{
    struct probe probe;

    prepare(&probe, PG_BEGIN, sql);
    CHECK_INT(pg_start(&probe.call, pool), 0);
    await(&probe);
    CHECK(!fault_is_set(&probe.call.fault));
    pg_call_fini(&probe.call);
    return probe.call.lease;
}

static struct pg_stats stats(void)
{
    struct pg_stats now;

    pg_worker_stats(worker, &now);
    return now;
}

/* Turns until IS_SO: for what ends without a call of ours. */
static void turn_until(bool (*is_so)(void))
{
    for (unsigned ms = 0; ms < PATIENCE_MS && !is_so(); ms += STEP_MS)
        turn_for(STEP_MS);
    CHECK(is_so());
}

static bool two_are_idle(void)
{
    return stats().idle == 2;
}

static bool connects_failed_again(void)
{
    return stats().connects_failed > 1;
}

/* --- claims ------------------------------------------------------------------------------------------ */

TEST(a_statement_is_answered)
{
    struct pg_pool *pool;

    open_process();
    pool = pool_of(server_url(), 20, 100, 5000);
    CHECK_STR(ask(pool, "select 6 * 7"), "42");
    CHECK_STR(ask(pool, "select 6 * 7"), "42");
    pg_pool_close(pool);
    close_process();
}

TEST(statements_are_answered_in_their_order_on_one_connection)
{
    enum { COUNT = 100 };
    struct probe    probes[COUNT];
    struct pg_pool *pool;

    open_process();
    pool = pool_of(server_url(), 1, 200, PATIENCE_MS); /* a second one would be made for so many */
    ask(pool, "select 1");
    for (int i = 0; i < COUNT; i++) {
        prepare(&probes[i], PG_RUN, i % 10 == 9 ? "select 1/0" : "select $1::int8");
        if (i % 10 != 9)
            values_add(&probes[i].call.params, value_int(i));
        CHECK_INT(pg_start(&probes[i].call, pool), 0);
    }
    CHECK_INT(stats().open, 1);
    done_count = 0;
    await(&probes[COUNT - 1]);
    CHECK_INT(stats().connects, 1);
    for (int i = 0; i < COUNT; i++) {
        struct str text;

        CHECK_INT(probes[i].order, i + 1);
        CHECK_INT(fault_is_set(&probes[i].call.fault), i % 10 == 9);
        if (i % 10 != 9) {
            CHECK(pg_rows_cell(&probes[i].call.rows, 0, 0, &text));
            CHECK_INT(strtol(text.at, NULL, 10), i);
        }
        pg_call_fini(&probes[i].call);
    }
    pg_pool_close(pool);
    close_process();
}

TEST(an_orphan_gives_its_answer_to_nobody)
{
    struct probe    first, second;
    struct pg_pool *pool;

    open_process();
    pool = pool_of(server_url(), 20, 100, 5000);
    ask(pool, "select 1");
    prepare(&first, PG_RUN, "select 'first' from pg_sleep(0.05)");
    CHECK_INT(pg_start(&first.call, pool), 0);
    prepare(&second, PG_RUN, "select 'second'");
    CHECK_INT(pg_start(&second.call, pool), 0);
    pg_cancel(&first.call);
    pg_call_fini(&first.call);
    await(&second);
    CHECK_INT(first.order, 0);
    CHECK_STR(ask(pool, "select 'third'"), "third");
    pg_call_fini(&second.call);
    CHECK_INT(stats().orphaned, 1);
    pg_pool_close(pool);
    close_process();
}

TEST(a_call_that_waits_is_cancelled_without_a_trace)
{
    struct probe    probe;
    struct pg_pool *pool;

    open_process();
    pool = pool_of(server_url(), 20, 1, 5000);
    prepare(&probe, PG_RUN, "select 1");
    CHECK_INT(pg_start(&probe.call, pool), 0); /* there is no connection yet */
    CHECK_INT(stats().waiting, 1);
    pg_cancel(&probe.call);
    CHECK_INT(stats().waiting, 0);
    pg_call_fini(&probe.call);
    CHECK_STR(ask(pool, "select 2"), "2");
    pg_pool_close(pool);
    close_process();
}

TEST(a_queue_that_is_full_is_busy)
{
    struct probe    probes[3];
    struct pg_pool *pool;

    open_process();
    pool = pool_of(server_url(), 20, 2, 5000);
    for (int i = 0; i < 3; i++) {
        prepare(&probes[i], PG_RUN, "select 1");
        CHECK_INT(pg_start(&probes[i].call, pool), i < 2 ? 0 : -1);
    }
    CHECK_STR(probes[2].call.fault.code, "busy");
    await(&probes[0]);
    await(&probes[1]);
    for (int i = 0; i < 3; i++)
        pg_call_fini(&probes[i].call);
    pg_pool_close(pool);
    close_process();
}

TEST(a_lease_that_is_closed_is_rolled_back_and_its_connection_used_again)
{
    struct pg_lease *lease;
    struct pg_pool  *pool;
    struct probe     probe;
    uint64_t         connects;

    open_process();
    pool = pool_of(server_url(), 20, 100, 5000);
    ask(pool, "select 1");
    lease = begin(pool, "begin");
    run(&probe, pool, lease, "create table never (n int)");
    CHECK(!fault_is_set(&probe.call.fault));
    pg_call_fini(&probe.call);
    CHECK_INT(stats().leased, 1);
    pg_lease_close(lease);
    turn_until(two_are_idle);
    CHECK_INT(stats().leased, 0);
    CHECK_STR(ask(pool, "select to_regclass('never') is null"), "t");
    connects = stats().connects;
    pg_lease_close(begin(pool, ""));
    CHECK_INT(stats().connects, connects);
    pg_pool_close(pool);
    close_process();
}

/* It would go on for longer than is waited here. */
static bool goes_on(struct pg_pool *pool)
{
    return strcmp(ask(pool, "select count(*) from pg_stat_activity "
                            "where query = 'select pg_sleep(60)' and state = 'active'"),
                  "0") != 0;
}

TEST(a_statement_cancelled_in_a_lease_is_stopped_on_the_server)
{
    struct pg_lease *lease;
    struct pg_pool  *pool;
    struct probe     probe;
    uint64_t         until;

    open_process();
    pool = pool_of(server_url(), 20, 100, 60000);
    ask(pool, "select 1");
    lease = begin(pool, "begin");
    prepare(&probe, PG_RUN, "select pg_sleep(60)");
    probe.call.lease = lease;
    CHECK_INT(pg_start(&probe.call, pool), 0);
    until = clock_mono_ns() + PATIENCE_MS * (uint64_t)NS_PER_MS;
    while (!goes_on(pool) && clock_mono_ns() < until)
        turn_for(STEP_MS);
    CHECK(goes_on(pool));
    pg_cancel(&probe.call);
    pg_call_fini(&probe.call);
    CHECK(lease->seat == NULL);
    CHECK_STR(lease->fault.code, "closed");
    pg_lease_close(lease);
    until = clock_mono_ns() + PATIENCE_MS * (uint64_t)NS_PER_MS;
    while (goes_on(pool) && clock_mono_ns() < until)
        turn_for(STEP_MS);
    CHECK(!goes_on(pool));
    CHECK(stats().cancelled >= 1); /* asked again if the server is slow to hear */
    pg_pool_close(pool);
    close_process();
}

TEST(the_budget_holds_for_all_workers_and_goes_round)
{
    struct pg_worker *other;
    struct pg_pool   *one, *two;
    struct pg_options options = { server_url(), 3, 100, 5000 };
    struct pg_lease  *leases[2];
    struct probe      probe;

    open_process();
    CHECK_INT(pg_worker_open(&other, pg, loop, dns, NULL), 0);
    CHECK_INT(pg_pool_open(&one, worker, &options, NULL), 0);
    CHECK_INT(pg_pool_open(&two, other, &options, NULL), 0);
    ask(one, "select 1");
    leases[0] = begin(one, "begin");
    ask(two, "select 1"); /* three are open: two here, one there */
    prepare(&probe, PG_BEGIN, "begin");
    CHECK_INT(pg_start(&probe.call, two), 0);
    await(&probe); /* it takes the one that was shared */
    leases[1] = probe.call.lease;
    pg_call_fini(&probe.call);
    prepare(&probe, PG_RUN, "select 1");
    CHECK_INT(pg_start(&probe.call, two), 0);
    turn_for(50);
    CHECK_INT(probe.order, 0);
    pg_lease_close(leases[0]); /* idle now, and given up for the other worker */
    await(&probe);
    CHECK(!fault_is_set(&probe.call.fault));
    pg_call_fini(&probe.call);
    pg_lease_close(leases[1]);
    pg_pool_close(one);
    pg_pool_close(two);
    pg_worker_close(other);
    close_process();
}

TEST(while_nobody_answers_calls_are_refused_at_once)
{
    struct pg_pool *pool;
    struct probe    probe;

    open_process();
    pool = pool_of("postgres://me@127.0.0.1:1/db", 20, 100, 5000);
    run(&probe, pool, NULL, "select 1");
    CHECK_STR(probe.call.fault.code, "unavailable");
    pg_call_fini(&probe.call);
    prepare(&probe, PG_RUN, "select 1");
    CHECK_INT(pg_start(&probe.call, pool), -1);
    CHECK_STR(probe.call.fault.code, "unavailable");
    pg_call_fini(&probe.call);
    turn_until(connects_failed_again); /* by itself */
    pg_pool_close(pool);
    close_process();
}

TEST(a_url_that_is_none_is_told)
{
    struct pg_options options = { "postgres://host:0/db", 20, 100, 5000 };
    struct pg_pool   *pool;
    struct err        err;

    open_process();
    CHECK_INT(pg_pool_open(&pool, worker, &options, &err), ERR_INVALID);
    options.url = "postgres://h/db?nothing=1";
    CHECK_INT(pg_pool_open(&pool, worker, &options, &err), ERR_INVALID);
    options.url = "postgres://one,two/db";
    CHECK_INT(pg_pool_open(&pool, worker, &options, &err), ERR_INVALID);
    close_process();
}

int main(void)
{
    return check_run();
}
