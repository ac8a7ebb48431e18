#include "data/sqlite.h"

#include "support/sqlite_fixture.h"

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

int main(void)
{
    return check_run();
}
