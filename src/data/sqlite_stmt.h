/* data/sqlite_stmt.h - one prepared statement: its parameters, its rows. Inside data/sqlite_* alone. */
#ifndef DATA_SQLITE_STMT_H
#define DATA_SQLITE_STMT_H

#include <stdbool.h>

#include <sqlite3.h>

#include "base/list.h"
#include "base/str.h"
#include "data/rows.h"

enum column_kind;
struct fault;
struct values;

struct sqlite_stmt {
    struct list   link; /* the connection's: where it waits to be used again */
    bool          kept; /* by the connection, under `sql` */
    sqlite3_stmt *handle;
    struct str    sql; /* owned */

    unsigned  parameter_count;
    unsigned *parameters; /* owned; the number behind the $ of each */
    unsigned  number_max;
    bool      in_order; /* $1, $2, $3: number and place are the same */

    int               column_count; /* -1: not yet asked for */
    enum column_kind *columns;      /* owned */
};

/* SQL is one statement whose placeholders are $1, $2, ... NULL: the fault is set. */
struct sqlite_stmt *sqlite_stmt_new(sqlite3 *db, struct str sql, struct fault *fault);
void                sqlite_stmt_free(struct sqlite_stmt *statement);

/* Whether it leaves the database as it is. */
bool sqlite_stmt_reads(const struct sqlite_stmt *statement);

/* Value n goes to every $n. */
int sqlite_stmt_bind(struct sqlite_stmt *statement, const struct values *params,
                     struct fault *fault);
/* Adds rows to ROWS, until there are enough or `done`. */
int sqlite_stmt_step(struct sqlite_stmt *statement, enum rows_keep keep, struct rows *rows,
                     struct fault *fault);
/* As after sqlite_stmt_new(). */
void sqlite_stmt_reset(struct sqlite_stmt *statement);

/* The first statement of SQL; *TAIL is behind it. *HANDLE is NULL where there is none. */
int sqlite_stmt_prepare(sqlite3 *db, struct str sql, unsigned flags, sqlite3_stmt **handle,
                        const char **tail, struct fault *fault);
/* Past blanks and comments. */
const char *sqlite_stmt_skip(const char *at, const char *end);

#endif
