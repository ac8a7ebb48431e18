/* What a statement may do is looked at when it is prepared (on_authorize): connections are shared,
 * so none may change what the next user of it finds: transactions, attached files, pragmas.
 *
 * Each statement has a watch: the progress handler looks at it every thousand steps of SQLite's
 * machine, and the busy handler between its naps. The interrupt is for the few places that do
 * neither. */
#include "data/sqlite_conn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "data/fault.h"
#include "data/sqlite_fault.h"
#include "data/sqlite_stmt.h"

enum {
    WATCH_STEPS = 1000, /* of the virtual machine: about 20 us */
    NAP_MS_MAX  = 20,   /* while another process has the lock */
};

struct sqlite_cursor {
    struct list         link; /* in conn->cursors */
    struct sqlite_stmt *statement;
};

struct sqlite_conn {
    sqlite3         *handle;
    enum sqlite_role role;

    struct map  statements; /* by text; those in use and those that wait to be used again */
    struct list unused;
    struct list cursors;
    unsigned    cursor_count;

    bool           preparing; /* the app's statement: authorize it */
    const char    *refusal;   /* why on_authorize() said no */
    enum sqlite_tx tx;        /* what was begun last */

    struct sqlite_watch watch;
};

/* --- the watch ------------------------------------------------------------------------------- */

void sqlite_conn_watch(struct sqlite_conn *conn, struct sqlite_watch watch)
{
    conn->watch = watch;
}

static bool is_over(const struct sqlite_conn *conn)
{
    const struct sqlite_watch *watch = &conn->watch;

    if (watch->cancelled && atomic_load_explicit(watch->cancelled, memory_order_relaxed))
        return true;
    return watch->deadline_ns && clock_mono_ns() >= watch->deadline_ns;
}

static int on_progress(void *arg)
{
    return is_over(arg);
}

/* Only another process can make us wait: within this one writers queue up before they begin. */
static int on_busy(void *arg, int naps)
{
    int ms = naps < NAP_MS_MAX ? naps + 1 : NAP_MS_MAX;

    if (is_over(arg))
        return 0;
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
    return 1;
}

void sqlite_conn_interrupt(struct sqlite_conn *conn)
{
    sqlite3_interrupt(conn->handle);
}

/* --- what a statement may do ----------------------------------------------------------------- */

static bool is_word(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (sqlite3_stricmp(word, *words) == 0)
            return true;
    return false;
}

/* Those that take an argument and leave the connection as it was, or act on the file. */
static const char *const PRAGMAS_WITH_ARGUMENT[] = {
    "application_id",
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "incremental_vacuum",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
    "wal_checkpoint",
    NULL,
};

static int refuse(struct sqlite_conn *conn, const char *why)
{
    conn->refusal = why;
    return SQLITE_DENY;
}

/* VACUUM attaches a file of its own while it runs; so the rules are for the app's text alone. */
static int on_authorize(void *arg, int action, const char *first, const char *second,
                        const char *schema, const char *trigger)
{
    struct sqlite_conn *conn = arg;

    (void)schema, (void)trigger;
    if (!conn->preparing)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT: return refuse(conn, "transactions are begun and ended by db:tx");
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return refuse(conn, "connections are shared: open the file with srv.db");
    case SQLITE_PRAGMA:
        if (second && !is_word(first, PRAGMAS_WITH_ARGUMENT))
            return refuse(conn, "connections are shared: this pragma is srv's to set");
        return SQLITE_OK;
    default: return SQLITE_OK;
    }
}

/* --- statements ------------------------------------------------------------------------------ */

/* For what the app wrote: SQLite's words for a refusal are "not authorized". */
static void begin_preparing(struct sqlite_conn *conn)
{
    conn->refusal   = NULL;
    conn->preparing = true;
}

static void end_preparing(struct sqlite_conn *conn, int rc, struct str sql, struct fault *fault)
{
    conn->preparing = false;
    if (rc != 0 && conn->refusal)
        fault_set_in(fault, "sql", conn->refusal, sql, 0);
}

static struct sqlite_stmt *new_statement(struct sqlite_conn *conn, struct str sql,
                                         struct fault *fault)
{
    struct sqlite_stmt *statement;

    begin_preparing(conn);
    statement = sqlite_stmt_new(conn->handle, sql, fault);
    end_preparing(conn, statement ? 0 : -1, sql, fault);
    return statement;
}

static void forget_least_used(struct sqlite_conn *conn)
{
    struct list *node = list_take_first(&conn->unused);

    if (node) {
        struct sqlite_stmt *statement = container_of(node, struct sqlite_stmt, link);

        map_remove(&conn->statements, statement->sql);
        sqlite_stmt_free(statement);
    }
}

/* Without memory for the table a statement is simply not kept. */
static void keep_statement(struct sqlite_conn *conn, struct sqlite_stmt *statement)
{
    if (conn->statements.count >= SQLITE_CONN_STATEMENTS_MAX)
        forget_least_used(conn);
    if (conn->statements.count < SQLITE_CONN_STATEMENTS_MAX)
        statement->kept = map_put(&conn->statements, statement->sql, statement, NULL);
}

/* A statement that is in use, by a cursor, is prepared a second time and not kept. */
static struct sqlite_stmt *take_statement(struct sqlite_conn *conn, struct str sql,
                                          struct fault *fault)
{
    struct sqlite_stmt *known = map_get(&conn->statements, sql);
    struct sqlite_stmt *fresh;

    if (known && list_is_linked(&known->link)) {
        list_remove(&known->link);
        return known;
    }
    fresh = new_statement(conn, sql, fault);
    if (fresh && !known)
        keep_statement(conn, fresh);
    return fresh;
}

static void give_statement(struct sqlite_conn *conn, struct sqlite_stmt *statement)
{
    sqlite_stmt_reset(statement);
    if (statement->kept)
        list_append(&conn->unused, &statement->link);
    else
        sqlite_stmt_free(statement);
}

static bool is_out_of_place(const struct sqlite_conn *conn, const struct sqlite_stmt *statement)
{
    bool reads = conn->role == ROLE_READER || conn->tx == TX_READ;

    return reads && !sqlite_stmt_reads(statement);
}

int sqlite_conn_run(struct sqlite_conn *conn, struct str sql, const struct values *params,
                    enum rows_keep keep, struct rows *rows, struct fault *fault)
{
    struct sqlite_stmt *statement = take_statement(conn, sql, fault);
    int                 rc;

    if (!statement)
        return -1;
    if (is_out_of_place(conn, statement))
        rc = SQLITE_CONN_WRITES;
    else if ((rc = sqlite_stmt_bind(statement, params, fault)) == 0)
        rc = sqlite_stmt_step(statement, keep, rows, fault);
    give_statement(conn, statement);
    return rc;
}

/* --- cursors --------------------------------------------------------------------------------- */

static int pause_at(struct sqlite_conn *conn, struct sqlite_stmt *statement,
                    struct sqlite_cursor **out, struct fault *fault)
{
    struct sqlite_cursor *cursor;

    if (conn->cursor_count == SQLITE_CONN_CURSORS_MAX)
        return fault_set(fault, "sql", "more than %d loops over rows at once",
                         SQLITE_CONN_CURSORS_MAX);
    cursor = malloc(sizeof(*cursor));
    if (!cursor)
        return fault_set(fault, "unavailable", "no memory for a cursor");
    cursor->statement = statement;
    list_init(&cursor->link);
    list_append(&conn->cursors, &cursor->link);
    conn->cursor_count++;
    *out = cursor;
    return 0;
}

int sqlite_conn_open_cursor(struct sqlite_conn *conn, struct str sql, const struct values *params,
                            struct rows *rows, struct sqlite_cursor **cursor, struct fault *fault)
{
    struct sqlite_stmt *statement = take_statement(conn, sql, fault);
    int                 rc;

    *cursor = NULL;
    if (!statement)
        return -1;
    if (is_out_of_place(conn, statement))
        rc = SQLITE_CONN_WRITES;
    else if ((rc = sqlite_stmt_bind(statement, params, fault)) == 0)
        rc = sqlite_stmt_step(statement, ROWS_SOME, rows, fault);
    if (rc == 0 && !rows->done)
        rc = pause_at(conn, statement, cursor, fault);
    if (!*cursor)
        give_statement(conn, statement);
    return rc;
}

int sqlite_conn_fetch(struct sqlite_conn *conn, struct sqlite_cursor *cursor, struct rows *rows,
                      struct fault *fault)
{
    int rc = sqlite_stmt_step(cursor->statement, ROWS_SOME, rows, fault);

    if (rc != 0 || rows->done)
        sqlite_conn_close_cursor(conn, cursor);
    return rc;
}

void sqlite_conn_close_cursor(struct sqlite_conn *conn, struct sqlite_cursor *cursor)
{
    list_remove(&cursor->link);
    conn->cursor_count--;
    give_statement(conn, cursor->statement);
    free(cursor);
}

static void close_cursors(struct sqlite_conn *conn)
{
    while (!list_is_empty(&conn->cursors))
        sqlite_conn_close_cursor(conn,
                                 container_of(conn->cursors.next, struct sqlite_cursor, link));
}

/* --- scripts --------------------------------------------------------------------------------- */

static unsigned line_at(struct str text, const char *at)
{
    unsigned line = 1;

    for (const char *c = text.at; c < at && c < text.at + text.len; c++)
        line += *c == '\n';
    return line;
}

/* Puts the line in front of what went wrong. */
static int script_fault(struct fault *fault, unsigned line)
{
    struct fault inner = *fault;

    fault_set(fault, inner.code, "%u: %.*s", line, (int)sizeof(fault->text) - 16, inner.text);
    memcpy(fault->constraint, inner.constraint, sizeof(fault->constraint));
    return -1;
}

static int run_script_statement(struct sqlite_conn *conn, sqlite3_stmt *handle, struct str sql,
                                struct fault *fault)
{
    int rc;

    if (sqlite3_bind_parameter_count(handle) > 0)
        return fault_set_in(fault, "sql", "a script has no values for placeholders", sql, 0);
    do
        rc = sqlite3_step(handle);
    while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? 0 : sqlite_fault(fault, conn->handle, rc, sql);
}

static int prepare_next(struct sqlite_conn *conn, struct str rest, sqlite3_stmt **handle,
                        const char **next, struct fault *fault)
{
    int rc;

    begin_preparing(conn);
    rc = sqlite_stmt_prepare(conn->handle, rest, 0, handle, next, fault);
    end_preparing(conn, rc, rest, fault);
    return rc;
}

int sqlite_conn_script(struct sqlite_conn *conn, struct str text, struct fault *fault)
{
    const char *end = text.at + text.len;
    const char *at  = sqlite_stmt_skip(text.at, end);

    while (at < end) {
        sqlite3_stmt *handle = NULL;
        const char   *next   = end;
        struct str    rest   = { at, (size_t)(end - at) };
        int           rc     = prepare_next(conn, rest, &handle, &next, fault);
        int           offset = rc ? sqlite3_error_offset(conn->handle) : 0;

        if (rc == 0 && handle)
            rc = run_script_statement(conn, handle, str_make(at, (size_t)(next - at)), fault);
        sqlite3_finalize(handle);
        if (rc != 0)
            return script_fault(fault, line_at(text, at + (offset > 0 ? offset : 0)));
        at = sqlite_stmt_skip(next, end);
    }
    return 0;
}

/* --- transactions ---------------------------------------------------------------------------- */

/* A statement of our own: not authorized, not kept. */
static int control(struct sqlite_conn *conn, const char *sql, struct fault *fault)
{
    int rc = sqlite3_exec(conn->handle, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : sqlite_fault(fault, conn->handle, rc, str_of(sql));
}

static const char *const BEGIN_SQL[] = {
    [TX_WRITE]   = "begin immediate",
    [TX_READ]    = "begin",
    [TX_MIGRATE] = "begin immediate",
};

static const char *const BEFORE_SQL[] = {
    [TX_WRITE]   = NULL,
    [TX_READ]    = "pragma query_only = on",
    [TX_MIGRATE] = "pragma foreign_keys = off",
};

/* As sqlite_conn_open() left it. */
static void restore(struct sqlite_conn *conn)
{
    if (conn->tx == TX_READ && conn->role == ROLE_WRITER)
        sqlite3_exec(conn->handle, "pragma query_only = off", NULL, NULL, NULL);
    if (conn->tx == TX_MIGRATE)
        sqlite3_exec(conn->handle, "pragma foreign_keys = on", NULL, NULL, NULL);
    conn->tx = TX_WRITE;
}

int sqlite_conn_begin(struct sqlite_conn *conn, enum sqlite_tx tx, struct fault *fault)
{
    assert(!sqlite_conn_in_transaction(conn));
    conn->tx = tx;
    if (BEFORE_SQL[tx] && control(conn, BEFORE_SQL[tx], fault) != 0)
        goto fail;
    if (control(conn, BEGIN_SQL[tx], fault) == 0)
        return 0;
fail:
    restore(conn);
    return -1;
}

/* What a rebuilt table left behind. */
static int check_foreign_keys(struct sqlite_conn *conn, struct fault *fault)
{
    sqlite3_stmt *handle;
    int rc = sqlite3_prepare_v2(conn->handle, "pragma foreign_key_check", -1, &handle, NULL);

    if (rc != SQLITE_OK)
        return sqlite_fault(fault, conn->handle, rc, STR("pragma foreign_key_check"));
    rc = sqlite3_step(handle);
    if (rc == SQLITE_ROW) {
        fault_set(fault, "foreign_key", "rows of %s refer to rows of %s that do not exist",
                  sqlite3_column_text(handle, 0), sqlite3_column_text(handle, 2));
    } else if (rc != SQLITE_DONE) {
        sqlite_fault(fault, conn->handle, rc, STR("pragma foreign_key_check"));
    }
    sqlite3_finalize(handle);
    return rc == SQLITE_DONE ? 0 : -1;
}

int sqlite_conn_commit(struct sqlite_conn *conn, struct fault *fault)
{
    int rc = 0;

    close_cursors(conn);
    if (!sqlite_conn_in_transaction(conn))
        rc = fault_set(fault, "conflict", "the transaction was rolled back by an earlier fault");
    if (rc == 0 && conn->tx == TX_MIGRATE)
        rc = check_foreign_keys(conn, fault);
    if (rc == 0)
        rc = control(conn, "commit", fault);
    if (rc != 0)
        sqlite_conn_rollback(conn);
    else
        restore(conn);
    return rc;
}

/* A late interrupt can hit the rollback itself, but only the first. */
void sqlite_conn_rollback(struct sqlite_conn *conn)
{
    close_cursors(conn);
    conn->watch = (struct sqlite_watch){ 0 };
    for (int tries = 0; tries < 3 && sqlite_conn_in_transaction(conn); tries++)
        sqlite3_exec(conn->handle, "rollback", NULL, NULL, NULL);
    restore(conn);
}

bool sqlite_conn_in_transaction(const struct sqlite_conn *conn)
{
    return !sqlite3_get_autocommit(conn->handle);
}

int sqlite_conn_mark(struct sqlite_conn *conn, enum sqlite_mark mark, unsigned depth,
                     struct fault *fault)
{
    static const char *const FORMATS[] = {
        [MARK_SET]     = "savepoint srv_%u",
        [MARK_RELEASE] = "release srv_%u",
        [MARK_UNDO]    = "rollback to srv_%u; release srv_%u",
    };
    char sql[80];

    snprintf(sql, sizeof(sql), FORMATS[mark], depth, depth);
    return control(conn, sql, fault);
}

/* --- opening and closing --------------------------------------------------------------------- */

/* Counting allocations would take a lock of the process for each of them. */
void sqlite_conn_setup(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_handle(struct sqlite_conn *conn, const char *path, struct fault *fault)
{
    bool memory = str_starts_with(str_of(path), STR(":memory:"));
    int  flags  = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int  rc     = sqlite3_open_v2(memory ? ":memory:" : path, &conn->handle, flags, NULL);

    if (rc == SQLITE_OK)
        return 0;
    return fault_set(fault, "unavailable", "cannot open %s: %s", path,
                     conn->handle ? sqlite3_errmsg(conn->handle) : sqlite3_errstr(rc));
}

/* A double-quoted word that is no column is an error, not a text; shadow tables are not written
 * by hand. */
static void set_up_handle(struct sqlite_conn *conn)
{
    sqlite3_extended_result_codes(conn->handle, 1);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(conn->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_busy_handler(conn->handle, on_busy, conn);
    sqlite3_progress_handler(conn->handle, WATCH_STEPS, on_progress, conn);
    sqlite3_set_authorizer(conn->handle, on_authorize, conn);
}

/* A database in memory or on a file system without shared memory stays as it is: slower, not
 * wrong. Turning a new file to WAL asks for the only lock that has no busy handler. */
static int set_up_database(struct sqlite_conn *conn, const char *path, struct fault *fault)
{
    int rc, naps = 0;

    do
        rc = sqlite3_exec(conn->handle, "pragma journal_mode = wal", NULL, NULL, NULL);
    while (rc == SQLITE_BUSY && on_busy(conn, naps++));
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(conn->handle,
                          "pragma synchronous = normal;"
                          "pragma foreign_keys = on;"
                          "pragma journal_size_limit = 67108864",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK && conn->role == ROLE_READER)
        rc = sqlite3_exec(conn->handle, "pragma query_only = on", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return 0;
    return fault_set(fault, "unavailable", "cannot open %s: %s", path,
                     sqlite3_errmsg(conn->handle));
}

int sqlite_conn_open(struct sqlite_conn **out, const char *path, enum sqlite_role role,
                     struct sqlite_watch watch, struct fault *fault)
{
    struct sqlite_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return fault_set(fault, "unavailable", "no memory for a connection to %s", path);
    conn->role  = role;
    conn->watch = watch;
    map_init(&conn->statements);
    list_init(&conn->unused);
    list_init(&conn->cursors);
    if (open_handle(conn, path, fault) != 0)
        goto close;
    set_up_handle(conn);
    if (set_up_database(conn, path, fault) != 0)
        goto close;
    *out = conn;
    return 0;

close:
    sqlite_conn_close(conn);
    return -1;
}

void sqlite_conn_close(struct sqlite_conn *conn)
{
    if (!conn)
        return;
    if (conn->handle)
        sqlite_conn_rollback(conn);
    while (!list_is_empty(&conn->unused))
        forget_least_used(conn);
    map_fini(&conn->statements);
    sqlite3_close(conn->handle);
    free(conn);
}
