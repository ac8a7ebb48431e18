#include "data/sqlite_conn.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/fault.h"
#include "base/compiler.h"
#include "support/check.h"

static struct sqlite_conn *conn;
static struct fault        fault;
static struct rows         rows;

static void open_memory(void)
{
    fault_clear(&fault);
    rows_init(&rows);
    CHECK_INT(sqlite_conn_open(&conn, ":memory:", ROLE_WRITER, (struct sqlite_watch){ 0 }, &fault),
              0);
}

static void close_conn(void)
{
    sqlite_conn_close(conn);
    rows_fini(&rows);
    conn = NULL;
}

static int run_with(const char *sql, const struct values *params, enum rows_keep keep)
{
    rows_fini(&rows);
    rows_init(&rows);
    fault_clear(&fault);
    return sqlite_conn_run(conn, str_of(sql), params, keep, &rows, &fault);
}

static int run(const char *sql)
{
    struct values none;

    values_init(&none, 0);
    return run_with(sql, &none, ROWS_ALL);
}

/* The result as "name=value ...; ...", for reading in a test. */
static const char *shown(void)
{
    static char  text[4096];
    struct str   cells = values_all(&rows.cells);
    size_t       at    = 0;
    struct value name, cell;

    text[0] = '\0';
    for (unsigned i = 0; i < rows.row_count; i++) {
        struct str names = values_all(&rows.names);

        at += (size_t)snprintf(text + at, sizeof(text) - at, i ? "; " : "");
        while (values_next(&names, &name) && values_next(&cells, &cell)) {
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s=", STR_ARG(name.bytes));
            switch (cell.kind) {
            case VALUE_NULL: at += (size_t)snprintf(text + at, sizeof(text) - at, "NULL "); break;
            case VALUE_BOOL:
                at += (size_t)snprintf(text + at, sizeof(text) - at, cell.integer ? "T " : "F ");
                break;
            case VALUE_INT:
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%lld ",
                                       (long long)cell.integer);
                break;
            case VALUE_REAL:
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%.17g ", cell.real);
                break;
            case VALUE_TEXT:
                at +=
                    (size_t)snprintf(text + at, sizeof(text) - at, "'%.*s' ", STR_ARG(cell.bytes));
                break;
            case VALUE_BLOB:
                at += (size_t)snprintf(text + at, sizeof(text) - at, "x%zu ", cell.bytes.len);
                break;
            case VALUE_JSON:
                at += (size_t)snprintf(text + at, sizeof(text) - at, "json'%.*s' ",
                                       STR_ARG(cell.bytes));
                break;
            }
        }
    }
    return text;
}

/* --- parameters and cells -------------------------------------------------------------------- */

TEST(parameters_go_by_their_numbers_not_their_places)
{
    struct values params;

    open_memory();
    values_init(&params, 1024);
    values_add(&params, value_bytes(VALUE_TEXT, STR("one")));
    values_add(&params, value_bytes(VALUE_TEXT, STR("two")));
    CHECK_INT(run_with("select $2 as b, $1 as a, $1 as c", &params, ROWS_ALL), 0);
    CHECK_STR(shown(), "b='two' a='one' c='one' ");
    values_fini(&params);
    close_conn();
}

TEST(values_come_back_as_they_went)
{
    struct values params;

    open_memory();
    values_init(&params, 1024);
    values_add(&params, value_null());
    values_add(&params, value_int(-7));
    values_add(&params, value_real(0.1));
    values_add(&params, value_bytes(VALUE_TEXT, STR("")));
    values_add(&params, value_bytes(VALUE_BLOB, STR("")));
    values_add(&params, value_bool(true));
    values_add(&params, value_int(INT64_MAX));
    CHECK_INT(run_with("select $1 a, $2 b, $3 c, $4 d, $5 e, $6 f, $7 g", &params, ROWS_ALL), 0);
    CHECK_STR(shown(), "a=NULL b=-7 c=0.10000000000000001 d='' e=x0 f=1 g='9223372036854775807' ");
    values_fini(&params);
    close_conn();
}

TEST(a_value_is_never_text_of_the_statement)
{
    struct values params;

    open_memory();
    CHECK_INT(run("create table t (name text)"), 0);
    values_init(&params, 1024);
    values_add(&params, value_bytes(VALUE_TEXT, STR("x'); drop table t; --")));
    CHECK_INT(run_with("insert into t values ($1)", &params, ROWS_NONE), 0);
    CHECK_INT(run("select name from t"), 0);
    CHECK_STR(shown(), "name='x'); drop table t; --' ");
    values_fini(&params);
    close_conn();
}

TEST(booleans_json_numerics_and_moments_go_by_the_declared_type)
{
    open_memory();
    CHECK_INT(run("create table t (b boolean, j json, n numeric(10, 2), d decimal, "
                  "m timestamp, u datetime, x date)"),
              0);
    CHECK_INT(run("insert into t values (1, '{\"a\":1}', 10.25, 12345678901234567, "
                  "'2021-06-22 19:54:00', '2021-06-22T19:54:00.5', '2021-06-22')"),
              0);
    CHECK_INT(run("insert into t values (0, null, null, 3, 7, '2021-06-22T19:54:00+02:00', null)"),
              0);
    CHECK_INT(run("select * from t"), 0);
    CHECK_STR(shown(), "b=T j=json'{\"a\":1}' n='10.25' d='12345678901234567' "
                       "m='2021-06-22T19:54:00Z' u='2021-06-22T19:54:00.5Z' x='2021-06-22' ; "
                       "b=F j=NULL n=NULL d='3' m=7 u='2021-06-22T19:54:00+02:00' x=NULL ");
    close_conn();
}

TEST(the_number_of_changed_rows_is_that_of_this_statement)
{
    open_memory();
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(rows.changed, 0);
    CHECK_INT(run("insert into t values (1), (2), (3)"), 0);
    CHECK_INT(rows.changed, 3);
    CHECK_INT(run("create table u (n)"), 0);
    CHECK_INT(rows.changed, 0);
    CHECK_INT(run("update t set n = 9 where n = 8"), 0);
    CHECK_INT(rows.changed, 0);
    CHECK_INT(run("select * from t"), 0);
    CHECK_INT(rows.changed, 0);
    close_conn();
}

/* --- faults ------------------------------------------------------------------------------------ */

static void check_fault(const char *sql, const char *code, const char *constraint)
{
    CHECK_INT(run(sql), -1);
    CHECK_STR(fault.code, code);
    CHECK_STR(fault.constraint, constraint);
}

TEST(a_broken_constraint_is_named)
{
    open_memory();
    CHECK_INT(run("create table a (id integer primary key, guid text unique, "
                  "title text not null, n int constraint positive check (n > 0))"),
              0);
    CHECK_INT(run("create table b (a_id int references a (id))"), 0);
    CHECK_INT(run("insert into a values (1, 'g', 't', 1)"), 0);
    check_fault("insert into a values (2, 'g', 't', 1)", "unique", "a.guid");
    check_fault("insert into a values (1, 'h', 't', 1)", "unique", "a.id");
    check_fault("insert into a values (2, 'h', null, 1)", "not_null", "a.title");
    check_fault("insert into a values (2, 'h', 't', 0)", "check", "positive");
    check_fault("insert into b values (7)", "foreign_key", "");
    CHECK_STR(fault.text, "FOREIGN KEY constraint failed, in: insert into b values (7)");
    CHECK_STR(fault_told("unique"), "this exists already");
    CHECK(!fault_told("not_null"));
    CHECK_INT(run("select count(*) n from a"), 0);
    CHECK_STR(shown(), "n=1 ");
    close_conn();
}

TEST(a_wrong_statement_is_told_with_its_text)
{
    open_memory();
    check_fault("select x from\n nowhere", "sql", "");
    CHECK_STR(fault.text, "no such table: nowhere, in: select x from  nowhere");
    check_fault("", "sql", "");
    check_fault(" -- only a comment", "sql", "");
    check_fault("select 1; select 2", "sql", "");
    check_fault("select ?", "sql", "");
    check_fault("select :name", "sql", "");
    check_fault("select $0", "sql", "");
    check_fault("select $1", "sql", "");
    CHECK(strstr(fault.text, "0 values for 1 placeholders"));
    CHECK_INT(run("select 1;  \n"), 0);
    close_conn();
}

TEST(a_double_quoted_word_that_is_no_column_is_no_text)
{
    open_memory();
    CHECK_INT(run("create table t (name text)"), 0);
    check_fault("select * from t where \"nmae\" = 'x'", "sql", "");
    close_conn();
}

TEST(no_statement_changes_what_the_next_user_of_the_connection_finds)
{
    static const char *const REFUSED[] = {
        "begin",
        "commit",
        "rollback",
        "savepoint a",
        "attach 'x' as y",
        "detach main",
        "pragma foreign_keys = off",
        "pragma journal_mode(delete)",
        "pragma query_only = 1",
    };

    open_memory();
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++)
        check_fault(REFUSED[i], "sql", "");
    CHECK_INT(run("pragma foreign_keys"), 0);
    CHECK_STR(shown(), "foreign_keys=1 ");
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(run("pragma table_info(t)"), 0);
    CHECK_INT(rows.row_count, 1);
    CHECK_INT(run("vacuum"), 0);
    close_conn();
}

/* --- bounds -------------------------------------------------------------------------------------- */

#define COUNT_TO(n)                                                                                \
    "with recursive c (n) as (select 1 union all select n + 1 from c where n < " #n ") "

TEST(more_rows_than_the_bound_are_a_fault)
{
    open_memory();
    check_fault(COUNT_TO(100001) "select n from c", "too_large", "");
    CHECK_INT(run(COUNT_TO(100000) "select n from c"), 0);
    CHECK_INT(rows.row_count, 100000);
    close_conn();
}

TEST(a_write_that_returns_too_much_is_taken_back)
{
    open_memory();
    CHECK_INT(run("create table t (n)"), 0);
    check_fault(COUNT_TO(100001) "insert into t select n from c returning n", "too_large", "");
    CHECK_INT(run("select count(*) n from t"), 0);
    CHECK_STR(shown(), "n=0 ");
    CHECK(!sqlite_conn_in_transaction(conn));
    close_conn();
}

TEST(only_the_first_row_is_read_but_a_write_is_done_whole)
{
    struct values none;

    values_init(&none, 0);
    open_memory();
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(run_with("insert into t values (1), (2) returning n", &none, ROWS_FIRST), 0);
    CHECK_STR(shown(), "n=1 ");
    CHECK_INT(rows.changed, 2);
    CHECK_INT(run("select n from t"), 0);
    CHECK_INT(rows.row_count, 2);
    close_conn();
}

TEST(a_statement_ends_at_its_deadline)
{
    uint64_t begun = clock_mono_ns();

    open_memory();
    sqlite_conn_watch(conn, (struct sqlite_watch){ begun + 50 * 1000000, NULL });
    check_fault(COUNT_TO(100000000000) "select max(n) from c", "timeout", "");
    CHECK(clock_mono_ns() - begun >= 50 * 1000000);
    close_conn();
}

TEST(a_cancelled_statement_ends)
{
    atomic_bool cancelled = true;

    open_memory();
    sqlite_conn_watch(conn, (struct sqlite_watch){ 0, &cancelled });
    check_fault(COUNT_TO(100000000000) "select max(n) from c", "timeout", "");
    close_conn();
}

TEST(more_statements_than_are_kept_still_run)
{
    char sql[64];

    open_memory();
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3 * SQLITE_CONN_STATEMENTS_MAX; i++) {
            snprintf(sql, sizeof(sql), "select %d as n", i);
            CHECK_INT(run(sql), 0);
        }
    CHECK_STR(shown(), "n=191 ");
    close_conn();
}

TEST(a_changed_table_changes_the_columns_of_a_kept_statement)
{
    open_memory();
    CHECK_INT(run("create table t (a boolean)"), 0);
    CHECK_INT(run("insert into t values (1)"), 0);
    CHECK_INT(run("select * from t"), 0);
    CHECK_STR(shown(), "a=T ");
    CHECK_INT(run("alter table t add column b json default '[]'"), 0);
    CHECK_INT(run("select * from t"), 0);
    CHECK_STR(shown(), "a=T b=json'[]' ");
    close_conn();
}

/* --- cursors ------------------------------------------------------------------------------------- */

TEST(a_cursor_gives_its_rows_in_batches)
{
    struct sqlite_cursor *cursor;
    struct values         none;
    unsigned              seen;

    values_init(&none, 0);
    open_memory();
    CHECK_INT(sqlite_conn_open_cursor(conn, STR(COUNT_TO(250) "select n from c"), &none, &rows,
                                      &cursor, &fault),
              0);
    CHECK(cursor && !rows.done);
    CHECK_INT(rows.row_count, ROWS_BATCH);
    /* The same text in between is another statement. */
    CHECK_INT(run(COUNT_TO(250) "select n from c"), 0);
    CHECK_INT(rows.row_count, 250);

    for (seen = ROWS_BATCH; cursor;) {
        rows_fini(&rows);
        rows_init(&rows);
        CHECK_INT(sqlite_conn_fetch(conn, cursor, &rows, &fault), 0);
        seen += rows.row_count;
        if (rows.done)
            cursor = NULL;
    }
    CHECK_INT(seen, 250);
    close_conn();
}

TEST(a_short_result_needs_no_cursor)
{
    struct sqlite_cursor *cursor;
    struct values         none;

    values_init(&none, 0);
    open_memory();
    CHECK_INT(sqlite_conn_open_cursor(conn, STR("select 1 as n"), &none, &rows, &cursor, &fault),
              0);
    CHECK(!cursor && rows.done);
    CHECK_STR(shown(), "n=1 ");
    close_conn();
}

/* --- scripts --------------------------------------------------------------------------------------- */

TEST(a_script_runs_its_statements_and_names_the_line_of_a_wrong_one)
{
    open_memory();
    CHECK_INT(sqlite_conn_script(conn,
                                 STR("-- a comment; with a semicolon\n"
                                     "create table t (n);\n"
                                     "create trigger g after insert on t begin\n"
                                     "  update t set n = 1; select 1;\n"
                                     "end; /* the end */\n"),
                                 &fault),
              0);
    CHECK_INT(sqlite_conn_script(
                  conn, STR("select 1;\n\n-- here:\nselect n\n  from t\n  where m = 1;\n"), &fault),
              -1);
    CHECK(strstr(fault.text, "6: no such column: m") == fault.text);
    CHECK_INT(sqlite_conn_script(conn, STR("\nselect 1;\n\ninsert into nope values (1)"), &fault),
              -1);
    CHECK(strstr(fault.text, "no such table: nope"));
    CHECK_INT(sqlite_conn_script(conn, STR("begin; select 1; commit"), &fault), -1);
    CHECK(strstr(fault.text, "1: transactions are begun and ended by db:tx") == fault.text);
    close_conn();
}

/* --- transactions ------------------------------------------------------------------------------------ */

TEST(a_savepoint_is_undone_alone)
{
    open_memory();
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(sqlite_conn_begin(conn, TX_WRITE, &fault), 0);
    CHECK_INT(run("insert into t values (1)"), 0);
    CHECK_INT(sqlite_conn_mark(conn, MARK_SET, 1, &fault), 0);
    CHECK_INT(run("insert into t values (2)"), 0);
    CHECK_INT(sqlite_conn_mark(conn, MARK_UNDO, 1, &fault), 0);
    CHECK_INT(sqlite_conn_mark(conn, MARK_SET, 1, &fault), 0);
    CHECK_INT(run("insert into t values (3)"), 0);
    CHECK_INT(sqlite_conn_mark(conn, MARK_RELEASE, 1, &fault), 0);
    CHECK_INT(sqlite_conn_commit(conn, &fault), 0);
    CHECK_INT(run("select n from t"), 0);
    CHECK_STR(shown(), "n=1 ; n=3 ");
    close_conn();
}

TEST(a_commit_that_fails_leaves_nothing_open)
{
    open_memory();
    CHECK_INT(run("create table a (id integer primary key)"), 0);
    CHECK_INT(run("create table b (a_id references a deferrable initially deferred)"), 0);
    CHECK_INT(sqlite_conn_begin(conn, TX_WRITE, &fault), 0);
    CHECK_INT(run("insert into b values (7)"), 0);
    CHECK_INT(sqlite_conn_commit(conn, &fault), -1);
    CHECK_STR(fault.code, "foreign_key");
    CHECK(!sqlite_conn_in_transaction(conn));
    CHECK_INT(run("select count(*) n from b"), 0);
    CHECK_STR(shown(), "n=0 ");
    close_conn();
}

TEST(a_transaction_that_reads_does_not_write)
{
    open_memory();
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(sqlite_conn_begin(conn, TX_READ, &fault), 0);
    CHECK_INT(run("insert into t values (1)"), SQLITE_CONN_WRITES);
    CHECK_INT(sqlite_conn_commit(conn, &fault), 0);
    CHECK_INT(run("insert into t values (1)"), 0);
    close_conn();
}

TEST(a_migration_may_rebuild_a_table_that_others_refer_to)
{
    open_memory();
    CHECK_INT(run("create table a (id integer primary key)"), 0);
    CHECK_INT(run("create table b (a_id references a on delete cascade)"), 0);
    CHECK_INT(run("insert into a values (1)"), 0);
    CHECK_INT(run("insert into b values (1)"), 0);
    CHECK_INT(sqlite_conn_begin(conn, TX_MIGRATE, &fault), 0);
    CHECK_INT(sqlite_conn_script(conn,
                                 STR("create table c (id integer primary key, n);"
                                     "insert into c select id, 0 from a;"
                                     "drop table a; alter table c rename to a"),
                                 &fault),
              0);
    CHECK_INT(sqlite_conn_commit(conn, &fault), 0);
    CHECK_INT(run("select count(*) n from b"), 0);
    CHECK_STR(shown(), "n=1 ");
    check_fault("insert into b values (7)", "foreign_key", "");

    CHECK_INT(sqlite_conn_begin(conn, TX_MIGRATE, &fault), 0);
    CHECK_INT(sqlite_conn_script(conn, STR("delete from a"), &fault), 0);
    CHECK_INT(sqlite_conn_commit(conn, &fault), -1);
    CHECK_STR(fault.text, "rows of b refer to rows of a that do not exist");
    CHECK_INT(run("select count(*) n from a"), 0);
    CHECK_STR(shown(), "n=1 ");
    close_conn();
}

TEST(another_process_that_holds_the_lock_is_a_conflict_at_the_deadline)
{
    char                path[] = "/tmp/srv-sqlite-XXXXXX";
    struct sqlite_conn *other;
    struct sqlite_watch never = { 0 };

    CHECK(close(mkstemp(path)) == 0);
    fault_clear(&fault);
    rows_init(&rows);
    CHECK_INT(sqlite_conn_open(&conn, path, ROLE_WRITER, never, &fault), 0);
    CHECK_INT(sqlite_conn_open(&other, path, ROLE_WRITER, never, &fault), 0);
    CHECK_INT(run("create table t (n)"), 0);
    CHECK_INT(sqlite_conn_begin(other, TX_WRITE, &fault), 0);
    sqlite_conn_watch(conn, (struct sqlite_watch){ clock_mono_ns() + 30 * 1000000, NULL });
    check_fault("insert into t values (1)", "conflict", "");
    sqlite_conn_watch(conn, never);
    CHECK_INT(run("select * from t"), 0); /* WAL: reading goes on */
    sqlite_conn_rollback(other);
    CHECK_INT(run("insert into t values (1)"), 0);
    sqlite_conn_close(other);
    close_conn();
    unlink(path);
}

TEST(what_is_no_database_is_unavailable)
{
    static const char *const PATHS[] = { "/tmp", "/nowhere/x.db", "/proc/self/status" };

    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        fault_clear(&fault);
        CHECK_INT(
            sqlite_conn_open(&conn, PATHS[i], ROLE_WRITER, (struct sqlite_watch){ 0 }, &fault), -1);
        CHECK_STR(fault.code, "unavailable");
        CHECK(strstr(fault.text, PATHS[i]));
    }
}

int main(void)
{
    return check_run();
}
