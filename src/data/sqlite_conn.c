/* What a statement may do is looked at when it is prepared (on_authorize): connections are shared,
 * so none may change what the next user of it finds: transactions, attached files, pragmas.
 *
 * Each statement has a watch: the progress handler looks at it every thousand steps of SQLite's
 * machine, and the busy handler between its naps. The interrupt is for the few places that do
 * neither. */
#include "data/sqlite_conn.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "data/fault.h"

enum {
    WATCH_STEPS   = 1000, /* of the virtual machine: about 20 us */
    NAP_MS_MAX    = 20,   /* while another process has the lock */
    EXCERPT_BYTES = 200,  /* of a statement, in messages */
    SQL_BYTES_MAX = 16 * 1024 * 1024,
    NUMBER_MAX    = 32766, /* of a placeholder */
};

/* What a column's declared type makes of its cells. */
enum column_kind { COLUMN_PLAIN, COLUMN_BOOLEAN, COLUMN_JSON, COLUMN_NUMERIC, COLUMN_MOMENT };

struct statement {
    struct list   link; /* in conn->unused, least recently used first; in no list while in use */
    sqlite3_stmt *handle;
    struct str    sql; /* owned; the cache's key */
    bool          cached;

    unsigned  parameter_count;
    unsigned *parameters; /* owned; the number behind the $ of each */
    unsigned  number_max;
    bool      in_order; /* $1, $2, $3: number and place are the same */

    int               column_count; /* -1: not yet asked for */
    enum column_kind *columns;      /* owned */
};

struct sqlite_cursor {
    struct list       link; /* in conn->cursors */
    struct statement *statement;
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

/* --- faults ---------------------------------------------------------------------------------- */

static const char *constraint_code(int extended)
{
    switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID: return "unique";
    case SQLITE_CONSTRAINT_FOREIGNKEY: return "foreign_key";
    case SQLITE_CONSTRAINT_NOTNULL: return "not_null";
    default: return "check"; /* CHECK, strict types, a trigger's raise() */
    }
}

static const char *fault_code(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return constraint_code(rc);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "conflict";
    case SQLITE_INTERRUPT: return "timeout";
    case SQLITE_TOOBIG: return "too_large";
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
    case SQLITE_NOMEM: return "unavailable";
    default: return "sql";
    }
}

/* "UNIQUE constraint failed: articles.guid" names it behind the colon; that of a foreign key
 * does not. A trigger's raise() has its own words. */
static int constraint_fault(struct fault *fault, int rc, const char *message)
{
    static const char FAILED[] = " constraint failed: ";
    const char       *code     = constraint_code(rc);
    const char       *at       = strstr(message, FAILED);
    const char       *name     = at ? at + strlen(FAILED) : "";

    if (strcmp(code, "unique") == 0)
        fault_set(fault, code, "already exists: %s", name);
    else if (strcmp(code, "not_null") == 0)
        fault_set(fault, code, "must have a value: %s", name);
    else if (strcmp(code, "foreign_key") == 0)
        fault_set(fault, code, "refers to a row that does not exist, or is still referred to");
    else if (at)
        fault_set(fault, code, "not allowed by the check %s", name);
    else
        fault_set(fault, code, "%s", message);
    snprintf(fault->constraint, sizeof(fault->constraint), "%s", name);
    return -1;
}

static int sql_fault(struct fault *fault, const char *code, const char *message, struct str sql)
{
    bool whole = sql.len <= EXCERPT_BYTES;

    return fault_set(fault, code, "%s, in: %.*s%s", message, whole ? (int)sql.len : EXCERPT_BYTES,
                     sql.at, whole ? "" : "...");
}

static int conn_fault(struct sqlite_conn *conn, int rc, struct str sql, struct fault *fault)
{
    const char *code    = fault_code(rc);
    const char *message = sqlite3_errmsg(conn->handle);

    if ((rc & 0xff) == SQLITE_CONSTRAINT)
        return constraint_fault(fault, rc, message);
    if ((rc & 0xff) == SQLITE_AUTH && conn->refusal)
        return sql_fault(fault, code, conn->refusal, sql);
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        message = "the statement took too long";
    else if ((rc & 0xff) == SQLITE_BUSY)
        message = "another process holds the database";
    return sql_fault(fault, code, message, sql);
}

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

/* --- statements: preparing ------------------------------------------------------------------- */

static void free_statement(struct statement *statement)
{
    sqlite3_finalize(statement->handle);
    free(statement->parameters);
    free(statement->columns);
    free((char *)statement->sql.at);
    free(statement);
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (isspace((unsigned char)*at) || *at == ';'))
        at++;
    return at == end;
}

/* *TAIL is where the next statement begins. *HANDLE is NULL for blanks and comments. */
static int prepare(struct sqlite_conn *conn, struct str sql, unsigned flags, sqlite3_stmt **handle,
                   const char **tail, struct fault *fault)
{
    int rc;

    if (sql.len > SQL_BYTES_MAX)
        return fault_set(fault, "sql", "a statement of %zu bytes", sql.len);
    if (sql.len && memchr(sql.at, '\0', sql.len))
        return fault_set(fault, "sql", "a NUL byte in the statement");
    conn->refusal   = NULL;
    conn->preparing = true;
    rc              = sqlite3_prepare_v3(conn->handle, sql.at, (int)sql.len, flags, handle, tail);
    conn->preparing = false;
    return rc == SQLITE_OK ? 0 : conn_fault(conn, rc, sql, fault);
}

/* "$7" -> 7; 0 for any other name, and for ?. */
static unsigned parameter_number(const char *name)
{
    uint64_t number = 0;

    if (!name || name[0] != '$' || !str_to_u64(str_of(name + 1), NUMBER_MAX, &number))
        return 0;
    return (unsigned)number;
}

static int read_parameters(struct statement *statement, struct fault *fault)
{
    unsigned count = (unsigned)sqlite3_bind_parameter_count(statement->handle);

    statement->in_order        = true;
    statement->parameter_count = count;
    statement->parameters      = calloc(count ? count : 1, sizeof(unsigned));
    if (!statement->parameters)
        return fault_set(fault, "unavailable", "no memory for a statement");
    for (unsigned i = 0; i < count; i++) {
        const char *name   = sqlite3_bind_parameter_name(statement->handle, (int)i + 1);
        unsigned    number = parameter_number(name);

        if (!number)
            return sql_fault(fault, "sql", "placeholders are $1, $2, ...", statement->sql);
        statement->parameters[i] = number;
        statement->in_order &= number == i + 1;
        if (number > statement->number_max)
            statement->number_max = number;
    }
    return 0;
}

static int fill_statement(struct sqlite_conn *conn, struct statement *statement,
                          struct fault *fault)
{
    struct str  sql = statement->sql;
    const char *tail;

    if (prepare(conn, sql, SQLITE_PREPARE_PERSISTENT, &statement->handle, &tail, fault) != 0)
        return -1;
    if (!statement->handle)
        return fault_set(fault, "sql", "an empty statement");
    if (!is_blank(tail, sql.at + sql.len))
        return sql_fault(fault, "sql", "one statement at a time", sql);
    return read_parameters(statement, fault);
}

static struct statement *new_statement(struct sqlite_conn *conn, struct str sql,
                                       struct fault *fault)
{
    struct statement *statement = calloc(1, sizeof(*statement));
    char             *copy      = malloc(sql.len + 1);

    if (!statement || !copy) {
        free(statement);
        free(copy);
        fault_set(fault, "unavailable", "no memory for a statement");
        return NULL;
    }
    memcpy(copy, sql.at, sql.len);
    copy[sql.len]           = '\0';
    statement->sql          = str_make(copy, sql.len);
    statement->column_count = -1;
    list_init(&statement->link);
    if (fill_statement(conn, statement, fault) == 0)
        return statement;
    free_statement(statement);
    return NULL;
}

static void forget_least_used(struct sqlite_conn *conn)
{
    struct list *node = list_take_first(&conn->unused);

    if (node) {
        struct statement *statement = container_of(node, struct statement, link);

        map_remove(&conn->statements, statement->sql);
        free_statement(statement);
    }
}

/* Without memory for the cache a statement is simply not kept. */
static void keep_statement(struct sqlite_conn *conn, struct statement *statement)
{
    if (conn->statements.count >= SQLITE_CONN_STATEMENTS_MAX)
        forget_least_used(conn);
    if (conn->statements.count < SQLITE_CONN_STATEMENTS_MAX)
        statement->cached = map_put(&conn->statements, statement->sql, statement, NULL);
}

/* A statement that is in use, by a cursor, is prepared a second time and not kept. */
static struct statement *take_statement(struct sqlite_conn *conn, struct str sql,
                                        struct fault *fault)
{
    struct statement *known = map_get(&conn->statements, sql);
    struct statement *fresh;

    if (known && list_is_linked(&known->link)) {
        list_remove(&known->link);
        return known;
    }
    fresh = new_statement(conn, sql, fault);
    if (fresh && !known)
        keep_statement(conn, fresh);
    return fresh;
}

static void give_statement(struct sqlite_conn *conn, struct statement *statement)
{
    sqlite3_reset(statement->handle);
    sqlite3_clear_bindings(statement->handle);
    if (statement->cached)
        list_append(&conn->unused, &statement->link);
    else
        free_statement(statement);
}

/* --- statements: binding --------------------------------------------------------------------- */

static int bind_value(sqlite3_stmt *handle, int index, const struct value *value)
{
    const char *at  = value->bytes.at;
    size_t      len = value->bytes.len;

    switch (value->kind) {
    case VALUE_NULL: return sqlite3_bind_null(handle, index);
    case VALUE_BOOL:
    case VALUE_INT: return sqlite3_bind_int64(handle, index, value->integer);
    case VALUE_REAL: return sqlite3_bind_double(handle, index, value->real);
    case VALUE_BLOB:
        if (len == 0) /* a pointer to nothing would be NULL */
            return sqlite3_bind_zeroblob(handle, index, 0);
        return sqlite3_bind_blob64(handle, index, at, len, SQLITE_TRANSIENT);
    case VALUE_TEXT:
    case VALUE_JSON:
        return sqlite3_bind_text64(handle, index, at, len, SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    return SQLITE_MISUSE;
}

/* Value number N of the caller goes to every parameter named $N, whatever its place: SQLite counts
 * names in order of first appearance. */
static int bind_number(struct statement *statement, unsigned number, const struct value *value)
{
    if (statement->in_order)
        return bind_value(statement->handle, (int)number, value);
    for (unsigned i = 0; i < statement->parameter_count; i++) {
        int rc = SQLITE_OK;

        if (statement->parameters[i] == number)
            rc = bind_value(statement->handle, (int)i + 1, value);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int bind_all(struct sqlite_conn *conn, struct statement *statement,
                    const struct values *params, struct fault *fault)
{
    struct str   rest   = values_all(params);
    unsigned     number = 0;
    struct value value;

    if (params->count != statement->number_max)
        return fault_set(fault, "sql", "%u values for %u placeholders, in: %.*s", params->count,
                         statement->number_max, EXCERPT_BYTES, statement->sql.at);
    while (values_next(&rest, &value)) {
        int rc = bind_number(statement, ++number, &value);

        if (rc != SQLITE_OK)
            return conn_fault(conn, rc, statement->sql, fault);
    }
    return 0;
}

/* --- statements: rows ------------------------------------------------------------------------ */

struct declared {
    const char      *word;
    enum column_kind kind;
};

static const struct declared DECLARED[] = {
    { "bool", COLUMN_BOOLEAN },     { "boolean", COLUMN_BOOLEAN },    { "json", COLUMN_JSON },
    { "jsonb", COLUMN_JSON },       { "numeric", COLUMN_NUMERIC },    { "decimal", COLUMN_NUMERIC },
    { "timestamp", COLUMN_MOMENT }, { "timestamptz", COLUMN_MOMENT }, { "datetime", COLUMN_MOMENT },
};

/* The first word counts: "numeric(10, 2)", "timestamp with time zone". */
static enum column_kind kind_of_type(const char *type)
{
    size_t len = type ? strcspn(type, " (") : 0;

    for (size_t i = 0; i < ARRAY_LEN(DECLARED); i++)
        if (len == strlen(DECLARED[i].word) &&
            sqlite3_strnicmp(type, DECLARED[i].word, (int)len) == 0)
            return DECLARED[i].kind;
    return COLUMN_PLAIN;
}

/* A changed schema prepares the statement anew, within its first step. */
static bool is_described(const struct statement *statement)
{
    sqlite3_stmt *handle = statement->handle;

    return statement->column_count == sqlite3_column_count(handle) &&
           sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 1) == 0;
}

static int describe(struct statement *statement, struct fault *fault)
{
    int               count = sqlite3_column_count(statement->handle);
    enum column_kind *kinds;

    if (is_described(statement))
        return 0;
    kinds = realloc(statement->columns, (size_t)(count ? count : 1) * sizeof(*kinds));
    if (!kinds)
        return fault_set(fault, "unavailable", "no memory for a statement");
    for (int i = 0; i < count; i++)
        kinds[i] = kind_of_type(sqlite3_column_decltype(statement->handle, i));
    statement->columns      = kinds;
    statement->column_count = count;
    return 0;
}

static void add_names(const struct statement *statement, struct rows *rows)
{
    for (int i = 0; i < statement->column_count; i++) {
        const char *name = sqlite3_column_name(statement->handle, i);

        values_add(&rows->names, value_bytes(VALUE_TEXT, str_of(name ? name : "")));
    }
}

/* 17 digits tell any two doubles apart; fewer are tried first. */
static int format_real(char *to, size_t room, double real)
{
    int len = snprintf(to, room, "%.15g", real);

    return strtod(to, NULL) == real ? len : snprintf(to, room, "%.17g", real);
}

static void add_numeric(struct rows *rows, sqlite3_stmt *handle, int column)
{
    char text[32];
    int  len;

    if (sqlite3_column_type(handle, column) == SQLITE_INTEGER)
        len = snprintf(text, sizeof(text), "%lld", sqlite3_column_int64(handle, column));
    else
        len = format_real(text, sizeof(text), sqlite3_column_double(handle, column));
    values_add(&rows->cells, value_bytes(VALUE_TEXT, str_make(text, (size_t)len)));
}

/* "2021-06-22 19:54:00" as SQLite's own functions write it: UTC, without saying so. */
static bool is_bare_moment(struct str text)
{
    static const char SHAPE[] = "dddd-dd-dd dd:dd:dd";

    if (text.len < sizeof(SHAPE) - 1)
        return false;
    for (size_t i = 0; i < sizeof(SHAPE) - 1; i++) {
        char c = text.at[i];

        if (SHAPE[i] == 'd' ? !isdigit((unsigned char)c) : c != SHAPE[i] && !(i == 10 && c == 'T'))
            return false;
    }
    for (size_t i = sizeof(SHAPE) - 1; i < text.len; i++)
        if (!isdigit((unsigned char)text.at[i]) && text.at[i] != '.')
            return false;
    return true;
}

static void add_moment(struct rows *rows, struct str text)
{
    char iso[64];

    if (!is_bare_moment(text) || text.len >= sizeof(iso)) {
        values_add(&rows->cells, value_bytes(VALUE_TEXT, text));
        return;
    }
    memcpy(iso, text.at, text.len);
    iso[10]       = 'T';
    iso[text.len] = 'Z';
    values_add(&rows->cells, value_bytes(VALUE_TEXT, str_make(iso, text.len + 1)));
}

static void add_text(struct rows *rows, sqlite3_stmt *handle, int column, enum column_kind kind)
{
    const char *at   = (const char *)sqlite3_column_text(handle, column);
    struct str  text = { at ? at : "", (size_t)sqlite3_column_bytes(handle, column) };

    if (kind == COLUMN_MOMENT)
        add_moment(rows, text);
    else
        values_add(&rows->cells, value_bytes(kind == COLUMN_JSON ? VALUE_JSON : VALUE_TEXT, text));
}

static void add_integer(struct rows *rows, int64_t integer, enum column_kind kind)
{
    if (kind == COLUMN_BOOLEAN && (integer == 0 || integer == 1))
        values_add(&rows->cells, value_bool(integer));
    else
        rows_add_integer(rows, integer);
}

static void add_blob(struct rows *rows, sqlite3_stmt *handle, int column)
{
    const char *at = sqlite3_column_blob(handle, column);

    values_add(&rows->cells,
               value_bytes(VALUE_BLOB, str_make(at, (size_t)sqlite3_column_bytes(handle, column))));
}

static void add_cell(struct rows *rows, sqlite3_stmt *handle, int column, enum column_kind kind)
{
    int type = sqlite3_column_type(handle, column);

    if (kind == COLUMN_NUMERIC && (type == SQLITE_INTEGER || type == SQLITE_FLOAT)) {
        add_numeric(rows, handle, column);
        return;
    }
    switch (type) {
    case SQLITE_NULL: values_add(&rows->cells, value_null()); break;
    case SQLITE_INTEGER: add_integer(rows, sqlite3_column_int64(handle, column), kind); break;
    case SQLITE_FLOAT:
        values_add(&rows->cells, value_real(sqlite3_column_double(handle, column)));
        break;
    case SQLITE_TEXT: add_text(rows, handle, column, kind); break;
    case SQLITE_BLOB: add_blob(rows, handle, column); break;
    }
}

static int add_row(struct statement *statement, struct rows *rows, struct fault *fault)
{
    if (rows->row_count == ROWS_MAX)
        return fault_set(fault, "too_large", "more than %d rows: read them with db:rows", ROWS_MAX);
    if (rows->row_count == 0) {
        if (describe(statement, fault) != 0)
            return -1;
        add_names(statement, rows);
    }
    for (int i = 0; i < statement->column_count; i++)
        add_cell(rows, statement->handle, i, statement->columns[i]);
    rows->row_count++;
    if (rows->cells.packed.failed || rows->names.packed.failed)
        return fault_set(fault, "too_large", "more than %d MiB of rows: read them with db:rows",
                         ROWS_BYTES_MAX >> 20);
    return 0;
}

/* --- statements: running --------------------------------------------------------------------- */

static bool is_wanted(const struct rows *rows, enum rows_keep keep)
{
    switch (keep) {
    case ROWS_NONE: return false;
    case ROWS_FIRST: return rows->row_count == 0;
    case ROWS_SOME:
    case ROWS_ALL: return true;
    }
    return false;
}

/* A statement that writes has written it all when its first row is there, but commits at its end:
 * it must come there. */
static bool may_pause(const struct statement *statement, const struct rows *rows,
                      enum rows_keep keep)
{
    if (!sqlite3_stmt_readonly(statement->handle))
        return false;
    return (keep == ROWS_FIRST && rows->row_count == 1) ||
           (keep == ROWS_SOME && rows->row_count == ROWS_BATCH);
}

/* Resetting a half-read statement that writes would keep what it wrote. An interrupted one is
 * taken back. */
static void undo_statement(struct sqlite_conn *conn, struct statement *statement)
{
    if (sqlite3_stmt_readonly(statement->handle))
        return;
    sqlite3_interrupt(conn->handle);
    while (sqlite3_step(statement->handle) == SQLITE_ROW)
        ;
}

static int step(struct sqlite_conn *conn, struct statement *statement, enum rows_keep keep,
                struct rows *rows, struct fault *fault)
{
    int rc;

    while ((rc = sqlite3_step(statement->handle)) == SQLITE_ROW) {
        if (is_wanted(rows, keep) && add_row(statement, rows, fault) != 0) {
            undo_statement(conn, statement);
            return -1;
        }
        if (may_pause(statement, rows, keep))
            return 0;
    }
    if (rc != SQLITE_DONE)
        return conn_fault(conn, rc, statement->sql, fault);
    rows->done = true;
    return 0;
}

/* sqlite3_changes() stays as it was when a statement changes no table. */
static int run_counted(struct sqlite_conn *conn, struct statement *statement, enum rows_keep keep,
                       struct rows *rows, struct fault *fault)
{
    int64_t before = sqlite3_total_changes64(conn->handle);
    int     rc     = step(conn, statement, keep, rows, fault);

    if (sqlite3_total_changes64(conn->handle) != before)
        rows->changed = sqlite3_changes64(conn->handle);
    return rc;
}

static bool is_out_of_place(const struct sqlite_conn *conn, const struct statement *statement)
{
    bool reads = conn->role == ROLE_READER || conn->tx == TX_READ;

    return reads && !sqlite3_stmt_readonly(statement->handle);
}

int sqlite_conn_run(struct sqlite_conn *conn, struct str sql, const struct values *params,
                    enum rows_keep keep, struct rows *rows, struct fault *fault)
{
    struct statement *statement = take_statement(conn, sql, fault);
    int               rc;

    if (!statement)
        return -1;
    if (is_out_of_place(conn, statement))
        rc = SQLITE_CONN_WRITES;
    else if ((rc = bind_all(conn, statement, params, fault)) == 0)
        rc = run_counted(conn, statement, keep, rows, fault);
    give_statement(conn, statement);
    return rc;
}

/* --- cursors --------------------------------------------------------------------------------- */

static int pause_at(struct sqlite_conn *conn, struct statement *statement,
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
    struct statement *statement = take_statement(conn, sql, fault);
    int               rc;

    *cursor = NULL;
    if (!statement)
        return -1;
    if (is_out_of_place(conn, statement))
        rc = SQLITE_CONN_WRITES;
    else if ((rc = bind_all(conn, statement, params, fault)) == 0)
        rc = run_counted(conn, statement, ROWS_SOME, rows, fault);
    if (rc == 0 && !rows->done)
        rc = pause_at(conn, statement, cursor, fault);
    if (!*cursor)
        give_statement(conn, statement);
    return rc;
}

int sqlite_conn_fetch(struct sqlite_conn *conn, struct sqlite_cursor *cursor, struct rows *rows,
                      struct fault *fault)
{
    int rc = step(conn, cursor->statement, ROWS_SOME, rows, fault);

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

/* Past blanks and comments: a message names the line of the statement, not of what stands above. */
static const char *statement_start(const char *at, const char *end)
{
    for (;;) {
        const char *from = at;

        while (at < end && isspace((unsigned char)*at))
            at++;
        if (end - at >= 2 && at[0] == '-' && at[1] == '-')
            while (at < end && *at != '\n')
                at++;
        else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            while (at < end && !(end - at >= 2 && at[0] == '*' && at[1] == '/'))
                at++;
            at = end - at >= 2 ? at + 2 : end;
        }
        if (at == from)
            return at;
    }
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
        return sql_fault(fault, "sql", "a script has no values for placeholders", sql);
    do
        rc = sqlite3_step(handle);
    while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? 0 : conn_fault(conn, rc, sql, fault);
}

int sqlite_conn_script(struct sqlite_conn *conn, struct str text, struct fault *fault)
{
    const char *end = text.at + text.len;
    const char *at  = statement_start(text.at, end);

    while (at < end) {
        sqlite3_stmt *handle = NULL;
        const char   *next   = end;
        struct str    rest   = { at, (size_t)(end - at) };
        int           rc     = prepare(conn, rest, 0, &handle, &next, fault);
        int           offset = rc ? sqlite3_error_offset(conn->handle) : 0;

        if (rc == 0 && handle)
            rc = run_script_statement(conn, handle, str_make(at, (size_t)(next - at)), fault);
        sqlite3_finalize(handle);
        if (rc != 0)
            return script_fault(fault, line_at(text, at + (offset > 0 ? offset : 0)));
        at = statement_start(next, end);
    }
    return 0;
}

/* --- transactions ---------------------------------------------------------------------------- */

/* A statement of our own: not authorized, not kept. */
static int control(struct sqlite_conn *conn, const char *sql, struct fault *fault)
{
    int rc = sqlite3_exec(conn->handle, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : conn_fault(conn, rc, str_of(sql), fault);
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
        return conn_fault(conn, rc, STR("pragma foreign_key_check"), fault);
    rc = sqlite3_step(handle);
    if (rc == SQLITE_ROW) {
        fault_set(fault, "foreign_key", "rows of %s refer to rows of %s that do not exist",
                  sqlite3_column_text(handle, 0), sqlite3_column_text(handle, 2));
    } else if (rc != SQLITE_DONE) {
        conn_fault(conn, rc, STR("pragma foreign_key_check"), fault);
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
