#include "data/sqlite_lease.h"

#include "support/sqlite_fixture.h"

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

int main(void)
{
    return check_run();
}
