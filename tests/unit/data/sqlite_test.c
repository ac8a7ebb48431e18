#include "data/sqlite.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop   *loop;
static struct pool   *pool;
static struct sqlite *sqlite;
static char           path[64];
static unsigned       dropped;
static unsigned       pending; /* started, neither done nor dropped */

static struct sqlite_db *open_at(const char *where, unsigned connections, unsigned waiting)
{
    struct sqlite_options options = { where, connections, waiting };
    struct sqlite_db     *db;

    CHECK_INT(sqlite_db_open(&db, sqlite, &options, NULL), 0);
    return db;
}

static void open_process_with(unsigned threads, unsigned queue_max)
{
    struct lane *lane;

    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    CHECK_INT(lane_open(&lane, pool, "sqlite", threads, queue_max, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    snprintf(path, sizeof(path), "/tmp/srv-sqlite-XXXXXX");
    CHECK(close(mkstemp(path)) == 0);
    dropped = pending = 0;
}

static void open_process(unsigned threads)
{
    open_process_with(threads, 64);
}

static void remove_file(const char *suffix)
{
    char name[80];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
}

static void close_process(void)
{
    sqlite_close(sqlite);
    pool_close(pool);
    loop_close(loop);
    remove_file("");
    remove_file("-wal");
    remove_file("-shm");
}

/* --- calls ----------------------------------------------------------------------------------- */

struct probe {
    struct sqlite_call call;
    bool               is_done;
};

static void on_done(struct sqlite_call *call)
{
    struct probe *probe = container_of(call, struct probe, call);

    probe->is_done = true;
    pending--;
    loop_break(loop);
}

static void on_drop(struct sqlite_call *call)
{
    sqlite_call_fini(call);
    free(container_of(call, struct probe, call));
    dropped++;
    pending--;
    loop_break(loop);
}

static struct probe *probe_new(enum sqlite_verb verb, const char *sql)
{
    struct probe *probe = calloc(1, sizeof(*probe));

    sqlite_call_init(&probe->call, verb);
    buf_add_str(&probe->call.sql, str_of(sql));
    probe->call.keep       = ROWS_ALL;
    probe->call.timeout_ms = 20000;
    probe->call.done       = on_done;
    probe->call.drop       = on_drop;
    return probe;
}

static void start(struct probe *probe, struct sqlite_db *db)
{
    CHECK_INT(sqlite_start(&probe->call, db, loop), 0);
    pending++;
}

static void await(struct probe *probe)
{
    while (!probe->is_done)
        loop_run(loop);
}

static void await_all(void)
{
    while (pending > 0)
        loop_run(loop);
}

static void free_probe(struct probe *probe)
{
    sqlite_call_fini(&probe->call);
    free(probe);
}

static void await_running(struct probe *probe)
{
    while (atomic_load(&probe->call.job.state) != JOB_RUNNING)
        sched_yield();
}

static const char *ask(struct sqlite_db *db, struct sqlite_lease *lease, const char *sql)
{
    static char   text[600];
    struct probe *probe = probe_new(CALL_RUN, sql);
    struct value  cell;
    struct str    rest;

    probe->call.lease = lease;
    start(probe, db);
    await(probe);
    text[0] = '\0';
    rest    = values_all(&probe->call.rows.cells);
    if (fault_is_set(&probe->call.fault))
        snprintf(text, sizeof(text), "%s: %s", probe->call.fault.code, probe->call.fault.text);
    else if (values_next(&rest, &cell) && cell.kind == VALUE_INT)
        snprintf(text, sizeof(text), "%lld", (long long)cell.integer);
    free_probe(probe);
    return text;
}

static struct sqlite_lease *begin(struct sqlite_db *db, enum sqlite_tx tx)
{
    struct probe        *probe = probe_new(CALL_BEGIN, "");
    struct sqlite_lease *lease;

    probe->call.tx = tx;
    start(probe, db);
    await(probe);
    CHECK(!fault_is_set(&probe->call.fault));
    lease = probe->call.lease;
    CHECK(lease);
    free_probe(probe);
    return lease;
}

static const char *end(struct sqlite_db *db, struct sqlite_lease *lease, enum sqlite_verb verb)
{
    struct probe *probe = probe_new(verb, "");
    const char   *code;

    probe->call.lease = lease;
    start(probe, db);
    await(probe);
    code = probe->call.fault.code;
    free_probe(probe);
    sqlite_lease_close(lease);
    return code ? code : "";
}

/* CHECK_STR() evaluates its arguments more than once. */
#define CHECK_ANSWER(asked, want)                                                                  \
    do {                                                                                           \
        const char *answer = (asked);                                                              \
        CHECK_STR(answer, want);                                                                   \
    } while (0)

#define ENDLESS                                                                                    \
    "with recursive c (n) as (select 1 union all select n + 1 from c) select max(n) from c"

/* --- queues ------------------------------------------------------------------------------------ */

static void write_at_once(unsigned threads, const char *where)
{
    enum { WRITERS = 100 };
    struct sqlite_db *db;
    struct probe     *probes[WRITERS];
    char              sql[64];

    open_process(threads);
    db = open_at(*where ? where : path, 20, 100);
    CHECK_ANSWER(ask(db, NULL, "create table t (n integer primary key autoincrement, m int)"), "");
    for (unsigned i = 0; i < WRITERS; i++) {
        snprintf(sql, sizeof(sql), "insert into t (m) values (%u)", i);
        probes[i] = probe_new(CALL_RUN, sql);
        start(probes[i], db);
    }
    await_all();
    for (unsigned i = 0; i < WRITERS; i++) {
        CHECK(!fault_is_set(&probes[i]->call.fault));
        free_probe(probes[i]);
    }
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t where n = m + 1"), "100");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_hundred_writers_at_once_succeed_in_their_order)
{
    write_at_once(4, "");
    write_at_once(1, "");
}

TEST(a_database_in_memory_is_one_for_all_who_open_it)
{
    struct sqlite_db *one, *two, *other;

    write_at_once(4, ":memory:");
    open_process(2);
    one   = open_at(":memory:", 20, 100);
    two   = open_at(":memory:", 20, 100);
    other = open_at(":memory:other", 20, 100);
    CHECK(one == two && one != other);
    CHECK_ANSWER(ask(one, NULL, "create table t (n)"), "");
    CHECK_ANSWER(ask(two, NULL, "select count(*) from t"), "0");
    CHECK(strstr(ask(other, NULL, "select count(*) from t"), "sql: no such table"));
    sqlite_db_close(one, loop_inbox(loop));
    sqlite_db_close(two, loop_inbox(loop));
    sqlite_db_close(other, loop_inbox(loop));
    close_process();
}

TEST(two_names_of_one_file_are_one_database)
{
    struct sqlite_db *one, *two;
    char              other[100];

    open_process(1);
    snprintf(other, sizeof(other), "/tmp/../tmp/%s", path + strlen("/tmp/"));
    one = open_at(path, 20, 100);
    two = open_at(other, 20, 100);
    CHECK(one == two);
    sqlite_db_close(one, loop_inbox(loop));
    sqlite_db_close(two, loop_inbox(loop));
    close_process();
}

TEST(readers_go_on_while_a_transaction_writes)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;

    open_process(2);
    db = open_at(path, 20, 100);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    lease = begin(db, TX_WRITE);
    CHECK(sqlite_lease_blocks(lease));
    CHECK_ANSWER(ask(db, lease, "insert into t values (1)"), "");
    CHECK_ANSWER(ask(db, lease, "select count(*) from t"), "1");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "0");
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_reading_transaction_sees_one_state)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;

    open_process(2);
    db = open_at(path, 20, 100);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    lease = begin(db, TX_READ);
    CHECK(!sqlite_lease_blocks(lease));
    CHECK_ANSWER(ask(db, lease, "select count(*) from t"), "0");
    CHECK_ANSWER(ask(db, NULL, "insert into t values (1)"), "");
    CHECK_ANSWER(ask(db, lease, "select count(*) from t"), "0");
    CHECK(strstr(ask(db, lease, "insert into t values (2)"), "sql: a readonly transaction"));
    CHECK_ANSWER(end(db, lease, CALL_ROLLBACK), "");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_statement_that_hides_its_writing_finds_the_writer)
{
    struct sqlite_db *db;

    open_process(2);
    db = open_at(path, 20, 100);
    CHECK_ANSWER(ask(db, NULL, "/* select */ create table t (n)"), "");
    CHECK_ANSWER(
        ask(db, NULL, "with a (n) as (select 7) insert into t select n from a returning n"), "7");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(beyond_its_bound_the_queue_says_busy_at_once)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *first, *second;

    open_process(2);
    db    = open_at(path, 2, 1);
    lease = begin(db, TX_WRITE);
    first = probe_new(CALL_RUN, "create table t (n)");
    start(first, db);
    second = probe_new(CALL_RUN, "create table u (n)");
    CHECK_INT(sqlite_start(&second->call, db, loop), ERR_BUSY);
    CHECK_STR(second->call.fault.code, "busy");
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "");
    await(first);
    CHECK(!fault_is_set(&first->call.fault));
    free_probe(first);
    free_probe(second);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_full_lane_says_busy_to_who_asks_and_to_who_is_next)
{
    struct sqlite_db *db;
    struct probe     *running, *next, *queued, *late;

    open_process_with(1, 1);
    db      = open_at(path, 3, 10);
    running = probe_new(CALL_RUN, "create table t as " ENDLESS);
    start(running, db);
    await_running(running);
    next = probe_new(CALL_RUN, "create table u (n)");
    start(next, db); /* waits for the writer */
    queued = probe_new(CALL_RUN, "select 7");
    start(queued, db); /* fills the lane */
    late = probe_new(CALL_RUN, "select 8");
    CHECK_INT(sqlite_start(&late->call, db, loop), ERR_BUSY);
    sqlite_cancel(&running->call);
    await(next);
    CHECK_STR(next->call.fault.code, "busy");
    await(queued);
    CHECK(!fault_is_set(&queued->call.fault));
    await_all();
    free_probe(next);
    free_probe(queued);
    free_probe(late);
    CHECK_ANSWER(ask(db, NULL, "select 9"), "9"); /* by the reader that was given back */
    CHECK_ANSWER(ask(db, NULL, "create table u (n)"), "");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(who_waits_too_long_is_told_and_holds_up_nobody)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *probe;

    open_process(2);
    db                     = open_at(path, 2, 10);
    lease                  = begin(db, TX_WRITE);
    probe                  = probe_new(CALL_RUN, "create table t (n)");
    probe->call.timeout_ms = 20;
    start(probe, db);
    await(probe);
    CHECK_STR(probe->call.fault.code, "timeout");
    free_probe(probe);
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "");
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_statement_that_takes_too_long_is_ended)
{
    struct sqlite_db *db;
    struct probe     *probe;

    open_process(1);
    db                     = open_at(path, 2, 10);
    probe                  = probe_new(CALL_RUN, ENDLESS);
    probe->call.timeout_ms = 20;
    start(probe, db);
    await(probe);
    CHECK_STR(probe->call.fault.code, "timeout");
    free_probe(probe);
    CHECK_ANSWER(ask(db, NULL, "select 7"), "7");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_file_that_cannot_be_opened_is_told_by_each_call)
{
    struct sqlite_db *db;

    open_process(1);
    db = open_at("/nowhere/at/all.db", 2, 10);
    CHECK(strstr(ask(db, NULL, "select 1"), "unavailable: cannot open /nowhere/at/all.db"));
    CHECK(strstr(ask(db, NULL, "create table t (n)"), "unavailable: cannot open"));
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

/* --- cancelling ---------------------------------------------------------------------------------- */

TEST(a_running_statement_is_interrupted_and_its_connection_goes_on)
{
    struct sqlite_db *db;
    struct probe     *probe;

    open_process(1);
    db = open_at(path, 2, 10);
    for (int i = 0; i < 20; i++) {
        probe                  = probe_new(CALL_RUN, ENDLESS);
        probe->call.timeout_ms = 0;
        start(probe, db);
        await_running(probe);
        sqlite_cancel(&probe->call);
        await_all();
    }
    CHECK_INT(dropped, 20);
    CHECK_ANSWER(ask(db, NULL, "select 7"), "7");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(one_that_waits_leaves_the_queue)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *first, *second;

    open_process(2);
    db     = open_at(path, 2, 10);
    lease  = begin(db, TX_WRITE);
    first  = probe_new(CALL_RUN, "create table t (n)");
    second = probe_new(CALL_RUN, "create table u (n)");
    start(first, db);
    start(second, db);
    sqlite_cancel(&first->call);
    CHECK_INT(dropped, 1);
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "");
    await(second);
    free_probe(second);
    CHECK_ANSWER(ask(db, NULL, "select count(*) from sqlite_schema"), "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(one_in_the_lane_gives_its_connection_to_the_next)
{
    struct sqlite_db *db;
    struct probe     *busy, *first, *second;

    open_process(1);
    db   = open_at(path, 2, 10);
    busy = probe_new(CALL_RUN, ENDLESS);
    start(busy, db); /* the only thread */
    await_running(busy);
    first  = probe_new(CALL_RUN, "create table t (n)");
    second = probe_new(CALL_RUN, "create table u (n)");
    start(first, db);  /* has the writer, waits for the thread */
    start(second, db); /* waits for the writer */
    sqlite_cancel(&first->call);
    CHECK_INT(dropped, 1);
    sqlite_cancel(&busy->call);
    await(second);
    await_all();
    CHECK(!fault_is_set(&second->call.fault));
    free_probe(second);
    CHECK_ANSWER(ask(db, NULL, "select count(*) from sqlite_schema"), "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

/* --- leases ---------------------------------------------------------------------------------------- */

TEST(a_lease_that_is_closed_is_rolled_back_before_the_next)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *next;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    lease = begin(db, TX_WRITE);
    CHECK_ANSWER(ask(db, lease, "insert into t values (1)"), "");
    next = probe_new(CALL_RUN, "insert into t select count(*) from t returning n");
    start(next, db);
    sqlite_lease_close(lease);
    await(next);
    CHECK(!fault_is_set(&next->call.fault));
    free_probe(next);
    CHECK_ANSWER(ask(db, NULL, "select n from t"), "0");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_transaction_cancelled_in_a_statement_is_rolled_back)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *probe;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    lease = begin(db, TX_WRITE);
    CHECK_ANSWER(ask(db, lease, "insert into t values (1)"), "");
    probe             = probe_new(CALL_RUN, ENDLESS);
    probe->call.lease = lease;
    start(probe, db);
    await_running(probe);
    sqlite_cancel(&probe->call);
    sqlite_lease_close(lease);
    CHECK_ANSWER(ask(db, NULL, "insert into t values (2) returning n"), "2");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "1");
    await_all();
    CHECK_INT(dropped, 1);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

/* Whether the cancel comes before, during or after BEGIN has run. */
TEST(a_cancelled_begin_leaves_no_lease)
{
    struct sqlite_db *db;
    struct probe     *probe;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    for (int i = 0; i < 100; i++) {
        probe = probe_new(CALL_BEGIN, "");
        start(probe, db);
        for (int spin = 0; spin < i * 200; spin++)
            atomic_load(&probe->call.job.state);
        sqlite_cancel(&probe->call);
    }
    CHECK_ANSWER(ask(db, NULL, "insert into t values (2) returning n"), "2");
    await_all();
    CHECK_INT(dropped, 100);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(calls_of_one_lease_run_one_after_the_other)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *probes[10];
    char                 sql[64];

    open_process(4);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table t (n integer primary key autoincrement, m int)"), "");
    lease = begin(db, TX_WRITE);
    for (int i = 0; i < 10; i++) {
        snprintf(sql, sizeof(sql), "insert into t (m) values (%d)", i);
        probes[i]             = probe_new(CALL_RUN, sql);
        probes[i]->call.lease = lease;
        start(probes[i], db);
    }
    await_all();
    for (int i = 0; i < 10; i++) {
        CHECK(!fault_is_set(&probes[i]->call.fault));
        free_probe(probes[i]);
    }
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t where n = m + 1"), "10");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(calls_that_wait_in_a_lease_that_ends_are_told)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *busy, *commit, *late;

    open_process(1);
    db    = open_at(path, 2, 10);
    lease = begin(db, TX_WRITE);
    busy  = probe_new(CALL_RUN, ENDLESS);
    start(busy, db); /* the only thread, so that the commit does not run yet */
    await_running(busy);
    commit             = probe_new(CALL_COMMIT, "");
    late               = probe_new(CALL_RUN, "select 1");
    commit->call.lease = late->call.lease = lease;
    start(commit, db);
    start(late, db);
    sqlite_cancel(&busy->call);
    await_all();
    CHECK(!fault_is_set(&commit->call.fault));
    CHECK_STR(late->call.fault.code, "closed");
    CHECK_INT(sqlite_start(&late->call, db, loop), ERR_CLOSED);
    free_probe(commit);
    free_probe(late);
    sqlite_lease_close(lease);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(nothing_runs_outside_a_transaction_that_sqlite_has_ended)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *probe;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    lease = begin(db, TX_WRITE);
    CHECK_ANSWER(ask(db, lease, "insert into t values (1)"), "");
    probe                  = probe_new(CALL_RUN, "insert into t " ENDLESS);
    probe->call.lease      = lease;
    probe->call.timeout_ms = 20;
    start(probe, db);
    await(probe);
    CHECK_STR(probe->call.fault.code, "timeout");
    free_probe(probe);
    CHECK(strstr(ask(db, lease, "insert into t values (2)"), "conflict: "));
    CHECK_ANSWER(end(db, lease, CALL_COMMIT), "conflict");
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "0");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

/* --- cursors ----------------------------------------------------------------------------------------- */

#define COUNT_TO_250                                                                               \
    "with recursive c (n) as (select 1 union all select n + 1 from c where n < 250) "              \
    "select n from c"

static struct probe *open_cursor(struct sqlite_db *db)
{
    struct probe *probe = probe_new(CALL_CURSOR, COUNT_TO_250);

    start(probe, db);
    await(probe);
    CHECK(!fault_is_set(&probe->call.fault));
    return probe;
}

static struct probe *fetch(struct sqlite_db *db, struct probe *cursor)
{
    struct probe *probe = probe_new(CALL_FETCH, "");

    probe->call.lease  = cursor->call.lease;
    probe->call.cursor = cursor->call.cursor;
    start(probe, db);
    await(probe);
    CHECK(!fault_is_set(&probe->call.fault));
    return probe;
}

TEST(a_cursor_keeps_its_reader_until_the_last_row)
{
    struct sqlite_db *db;
    struct probe     *cursor, *batch;
    unsigned          seen;
    bool              more = true;

    open_process(2);
    db     = open_at(path, 2, 10);
    cursor = open_cursor(db);
    CHECK_INT(cursor->call.rows.row_count, ROWS_BATCH);
    seen = ROWS_BATCH;
    CHECK(cursor->call.lease && !sqlite_lease_blocks(cursor->call.lease));
    while (more) {
        batch = fetch(db, cursor);
        seen += batch->call.rows.row_count;
        more = !batch->call.rows.done;
        free_probe(batch);
    }
    CHECK_INT(seen, 250);
    CHECK_ANSWER(ask(db, NULL, "select 7"), "7"); /* by the only reader */
    sqlite_lease_close(cursor->call.lease);
    free_probe(cursor);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(a_cursor_left_in_the_middle_gives_its_reader_back)
{
    struct sqlite_db *db;
    struct probe     *cursor;

    open_process(2);
    db     = open_at(path, 2, 10);
    cursor = open_cursor(db);
    sqlite_lease_close(cursor->call.lease);
    free_probe(cursor);
    CHECK_ANSWER(ask(db, NULL, "select 7"), "7");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

TEST(in_memory_a_loop_over_rows_keeps_nothing)
{
    struct sqlite_db *db;
    struct probe     *cursor;

    open_process(2);
    db     = open_at(":memory:", 2, 10);
    cursor = open_cursor(db);
    CHECK(!cursor->call.lease && cursor->call.rows.done);
    CHECK_INT(cursor->call.rows.row_count, 250);
    free_probe(cursor);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

/* --- ends ---------------------------------------------------------------------------------------------- */

TEST(a_database_outlives_its_opener_while_a_call_is_under_way)
{
    struct sqlite_db *db;
    struct probe     *probe;

    open_process(2);
    db    = open_at(path, 2, 10);
    probe = probe_new(CALL_RUN, "create table t (n)");
    start(probe, db);
    sqlite_db_close(db, loop_inbox(loop));
    await(probe);
    CHECK(!fault_is_set(&probe->call.fault));
    free_probe(probe);
    close_process();
}

/* As a worker goes: its tasks are cancelled, then nobody reads the inbox any more. */
TEST(a_worker_that_goes_leaves_nothing_behind)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *probes[4];

    open_process(1);
    db        = open_at(path, 3, 10);
    lease     = begin(db, TX_WRITE);
    probes[0] = probe_new(CALL_RUN, ENDLESS);              /* runs */
    probes[1] = probe_new(CALL_RUN, ENDLESS);              /* in the lane */
    probes[2] = probe_new(CALL_RUN, "select 1");           /* waits for a reader */
    probes[3] = probe_new(CALL_RUN, "create table t (n)"); /* waits for the writer */
    for (int i = 0; i < 4; i++)
        start(probes[i], db);
    await_running(probes[0]);
    for (int i = 0; i < 4; i++)
        sqlite_cancel(&probes[i]->call);
    CHECK_INT(dropped, 3);
    sqlite_lease_close(lease);
    sqlite_db_close(db, loop_inbox(loop));
    inbox_close(loop_inbox(loop));
    close_process();
    CHECK_INT(dropped, 4);
}

TEST(what_the_lane_never_ran_is_rolled_back_where_it_ends)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;
    struct probe        *busy, *queued;

    open_process(1);
    db    = open_at(path, 3, 10);
    lease = begin(db, TX_WRITE);
    busy  = probe_new(CALL_RUN, ENDLESS);
    start(busy, db);
    await_running(busy);
    queued = probe_new(CALL_RUN, "select 1");
    start(queued, db);
    sqlite_lease_close(lease); /* its last call is in the lane, behind the other two */
    sqlite_cancel(&busy->call);
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
    CHECK(dropped >= 1);
}

/* --- many threads ---------------------------------------------------------------------------------------- */

enum { WORKERS = 4, TURNS = 50 };

struct worker {
    pthread_t          thread;
    struct loop       *loop;
    struct sqlite_db  *db;
    struct sqlite_call call;
    unsigned           turns;
    unsigned           faults;
};

static void take_turn(struct worker *worker);

static void on_turn_done(struct sqlite_call *call)
{
    struct worker *worker = container_of(call, struct worker, call);

    worker->faults += fault_is_set(&call->fault);
    sqlite_call_fini(call);
    if (++worker->turns == TURNS)
        loop_break(worker->loop);
    else
        take_turn(worker);
}

static void take_turn(struct worker *worker)
{
    static const char *const SQL[] = { "insert into t values (1)", "select count(*) from t" };

    sqlite_call_init(&worker->call, CALL_RUN);
    buf_add_str(&worker->call.sql, str_of(SQL[worker->turns % 2]));
    worker->call.keep = ROWS_ALL;
    worker->call.done = on_turn_done;
    worker->call.drop = on_drop;
    if (sqlite_start(&worker->call, worker->db, worker->loop) != 0)
        abort();
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;

    take_turn(worker);
    loop_run(worker->loop);
    sqlite_db_close(worker->db, loop_inbox(worker->loop));
    return NULL;
}

TEST(four_threads_share_one_database)
{
    struct worker     workers[WORKERS] = { 0 };
    struct sqlite_db *db;

    open_process(4);
    db = open_at(path, 4, 100);
    CHECK_ANSWER(ask(db, NULL, "create table t (n)"), "");
    for (int i = 0; i < WORKERS; i++) {
        CHECK_INT(loop_open(&workers[i].loop, NULL), 0);
        workers[i].db = open_at(path, 4, 100);
        CHECK(workers[i].db == db);
        CHECK_INT(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].faults, 0);
    }
    CHECK_ANSWER(ask(db, NULL, "select count(*) from t"), "100");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
    for (int i = 0; i < WORKERS; i++)
        loop_close(workers[i].loop);
}

/* --- kill -9 ----------------------------------------------------------------------------------------------- */

/* Money goes from account to account, two statements a transaction, until the parent kills us. */
static void pay_for_ever(int ready_fd)
{
    struct sqlite_db    *db;
    struct sqlite_lease *lease;

    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    struct lane *lane;
    CHECK_INT(lane_open(&lane, pool, "sqlite", 2, 64, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    db = open_at(path, 2, 10);
    for (unsigned turn = 0;; turn++) {
        lease = begin(db, TX_WRITE);
        ask(db, lease, "update account set money = money - 1 where id = 1");
        ask(db, lease, "update account set money = money + 1 where id = 2");
        end(db, lease, CALL_COMMIT);
        if (turn == 20 && write(ready_fd, "!", 1) != 1)
            _exit(1);
    }
}

TEST(a_process_killed_while_it_writes_leaves_whole_transactions)
{
    struct sqlite_db *db;
    int               ready[2];
    char              byte;
    pid_t             child;

    open_process(2);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "create table account (id integer primary key, money int)"), "");
    CHECK_ANSWER(ask(db, NULL, "insert into account values (1, 0), (2, 0)"), "");
    sqlite_db_close(db, loop_inbox(loop));
    sqlite_close(sqlite);
    pool_close(pool);
    loop_close(loop);

    CHECK_INT(pipe(ready), 0);
    child = fork();
    if (child == 0)
        pay_for_ever(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);

    struct lane *lane;
    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    CHECK_INT(lane_open(&lane, pool, "sqlite", 2, 64, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    db = open_at(path, 2, 10);
    CHECK_ANSWER(ask(db, NULL, "select sum(money) from account"), "0");
    CHECK_ANSWER(ask(db, NULL, "select max(money) >= 20 from account"), "1");
    CHECK_ANSWER(ask(db, NULL,
                     "select count(*) from pragma_integrity_check where "
                     "integrity_check = 'ok'"),
                 "1");
    sqlite_db_close(db, loop_inbox(loop));
    close_process();
}

int main(void)
{
    return check_run();
}
