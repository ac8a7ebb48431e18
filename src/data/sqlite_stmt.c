/* A statement's parameters are read once, when it is prepared; what its columns are declared as, when
 * their first row is there: a changed schema prepares it anew within its first step. */
#include "data/sqlite_stmt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "data/fault.h"
#include "data/sqlite_fault.h"
#include "data/values.h"

enum {
    SQL_BYTES_MAX = 16 * 1024 * 1024,
    NUMBER_MAX    = 32766, /* of a placeholder */
};

/* What a column's declared type makes of its cells. */
enum column_kind { COLUMN_PLAIN, COLUMN_BOOLEAN, COLUMN_JSON, COLUMN_NUMERIC, COLUMN_MOMENT };

void sqlite_stmt_free(struct sqlite_stmt *statement)
{
    sqlite3_finalize(statement->handle);
    free(statement->parameters);
    free(statement->columns);
    free((char *)statement->sql.at);
    free(statement);
}

const char *sqlite_stmt_skip(const char *at, const char *end)
{
    for (;;) {
        const char *from = at;

        while (at < end && isspace((unsigned char)*at))
            at++;
        if (end - at >= 2 && at[0] == '-' && at[1] == '-')
            while (at < end && *at != '\n')
                at++;
        else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);

            at = close ? close + 2 : end;
        }
        if (at == from)
            return at;
    }
}

int sqlite_stmt_prepare(sqlite3 *db, struct str sql, unsigned flags, sqlite3_stmt **handle,
                        const char **tail, struct fault *fault)
{
    int rc;

    if (sql.len > SQL_BYTES_MAX)
        return fault_set(fault, "sql", "a statement of %zu bytes", sql.len);
    if (sql.len && memchr(sql.at, '\0', sql.len))
        return fault_set(fault, "sql", "a NUL byte in the statement");
    rc = sqlite3_prepare_v3(db, sql.at, (int)sql.len, flags, handle, tail);
    return rc == SQLITE_OK ? 0 : sqlite_fault(fault, db, rc, sql);
}

/* "$7" -> 7; 0 for any other name, and for ?. */
static unsigned parameter_number(const char *name)
{
    uint64_t number = 0;

    if (!name || name[0] != '$' || !str_to_u64(str_of(name + 1), NUMBER_MAX, &number))
        return 0;
    return (unsigned)number;
}

static int read_parameters(struct sqlite_stmt *statement, struct fault *fault)
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
            return fault_set_in(fault, "sql", "placeholders are $1, $2, ...", statement->sql, 0);
        statement->parameters[i] = number;
        statement->in_order &= number == i + 1;
        if (number > statement->number_max)
            statement->number_max = number;
    }
    return 0;
}

static int fill(sqlite3 *db, struct sqlite_stmt *statement, struct fault *fault)
{
    struct str  sql = statement->sql;
    const char *tail, *end = sql.at + sql.len;

    if (sqlite_stmt_prepare(db, sql, SQLITE_PREPARE_PERSISTENT, &statement->handle, &tail, fault) !=
        0)
        return -1;
    if (!statement->handle)
        return fault_set(fault, "sql", "an empty statement");
    if (sqlite_stmt_skip(tail, end) != end)
        return fault_set_in(fault, "sql", "one statement at a time", sql, 0);
    return read_parameters(statement, fault);
}

struct sqlite_stmt *sqlite_stmt_new(sqlite3 *db, struct str sql, struct fault *fault)
{
    struct sqlite_stmt *statement = calloc(1, sizeof(*statement));
    char               *copy      = malloc(sql.len + 1);

    if (!statement || !copy) {
        free(statement);
        free(copy);
        fault_set(fault, "unavailable", "no memory for a statement");
        return NULL;
    }
    if (sql.len)
        memcpy(copy, sql.at, sql.len);
    copy[sql.len]           = '\0';
    statement->sql          = str_make(copy, sql.len);
    statement->column_count = -1;
    list_init(&statement->link);
    if (fill(db, statement, fault) == 0)
        return statement;
    sqlite_stmt_free(statement);
    return NULL;
}

/* --- binding ------------------------------------------------------------------------------- */

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
static int bind_number(struct sqlite_stmt *statement, unsigned number, const struct value *value)
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

static int count_fault(const struct sqlite_stmt *statement, unsigned count, struct fault *fault)
{
    char message[64];

    snprintf(message, sizeof(message), "%u values for %u placeholders", count,
             statement->number_max);
    return fault_set_in(fault, "sql", message, statement->sql, 0);
}

int sqlite_stmt_bind(struct sqlite_stmt *statement, const struct values *params,
                     struct fault *fault)
{
    struct str   rest   = values_all(params);
    unsigned     number = 0;
    struct value value;

    if (params->count != statement->number_max)
        return count_fault(statement, params->count, fault);
    while (values_next(&rest, &value)) {
        int rc = bind_number(statement, ++number, &value);

        if (rc != SQLITE_OK)
            return sqlite_fault(fault, sqlite3_db_handle(statement->handle), rc, statement->sql);
    }
    return 0;
}

/* --- rows ---------------------------------------------------------------------------------- */

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
static bool is_described(const struct sqlite_stmt *statement)
{
    sqlite3_stmt *handle = statement->handle;

    return statement->column_count == sqlite3_column_count(handle) &&
           sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 1) == 0;
}

static int describe(struct sqlite_stmt *statement, struct fault *fault)
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

static void add_names(const struct sqlite_stmt *statement, struct rows *rows)
{
    for (int i = 0; i < statement->column_count; i++) {
        const char *name = sqlite3_column_name(statement->handle, i);

        values_add(&rows->names, value_bytes(VALUE_TEXT, str_of(name ? name : "")));
    }
}

static void add_numeric(struct rows *rows, sqlite3_stmt *handle, int column)
{
    char   text[NUMBER_TEXT_MAX];
    size_t len;

    if (sqlite3_column_type(handle, column) == SQLITE_INTEGER)
        len = (size_t)snprintf(text, sizeof(text), "%lld", sqlite3_column_int64(handle, column));
    else
        len = number_format(text, sqlite3_column_double(handle, column));
    values_add(&rows->cells, value_bytes(VALUE_TEXT, str_make(text, len)));
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

static int add_row(struct sqlite_stmt *statement, struct rows *rows, struct fault *fault)
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

/* --- running --------------------------------------------------------------------------------- */

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
static bool may_pause(const struct sqlite_stmt *statement, const struct rows *rows,
                      enum rows_keep keep)
{
    if (!sqlite_stmt_reads(statement))
        return false;
    return (keep == ROWS_FIRST && rows->row_count == 1) ||
           (keep == ROWS_SOME && rows->row_count == ROWS_BATCH);
}

/* Resetting a half-read statement that writes would keep what it wrote. An interrupted one is
 * taken back. */
static void undo(struct sqlite_stmt *statement)
{
    if (sqlite_stmt_reads(statement))
        return;
    sqlite3_interrupt(sqlite3_db_handle(statement->handle));
    while (sqlite3_step(statement->handle) == SQLITE_ROW)
        ;
}

static int step(struct sqlite_stmt *statement, enum rows_keep keep, struct rows *rows,
                struct fault *fault)
{
    int rc;

    while ((rc = sqlite3_step(statement->handle)) == SQLITE_ROW) {
        if (is_wanted(rows, keep) && add_row(statement, rows, fault) != 0) {
            undo(statement);
            return -1;
        }
        if (may_pause(statement, rows, keep))
            return 0;
    }
    if (rc != SQLITE_DONE)
        return sqlite_fault(fault, sqlite3_db_handle(statement->handle), rc, statement->sql);
    rows->done = true;
    return 0;
}

/* sqlite3_changes() stays as it was when a statement changes no table. */
int sqlite_stmt_step(struct sqlite_stmt *statement, enum rows_keep keep, struct rows *rows,
                     struct fault *fault)
{
    sqlite3 *db     = sqlite3_db_handle(statement->handle);
    int64_t  before = sqlite3_total_changes64(db);
    int      rc     = step(statement, keep, rows, fault);

    if (sqlite3_total_changes64(db) != before)
        rows->changed = sqlite3_changes64(db);
    return rc;
}

void sqlite_stmt_reset(struct sqlite_stmt *statement)
{
    sqlite3_reset(statement->handle);
    sqlite3_clear_bindings(statement->handle);
}

bool sqlite_stmt_reads(const struct sqlite_stmt *statement)
{
    return sqlite3_stmt_readonly(statement->handle);
}
