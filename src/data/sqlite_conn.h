/* data/sqlite_conn.h - one connection to one SQLite database. sqlite3 is named by sqlite_conn,
 * sqlite_stmt and sqlite_fault, and by nobody else.
 *
 * A connection belongs to whoever sits on it (data/sqlite.h), one thread at a time: it is opened
 * without SQLite's mutexes. Everything here blocks and runs on the pool, but for
 * sqlite_conn_interrupt(). Functions return 0, or -1 with the fault filled. */
#ifndef DATA_SQLITE_CONN_H
#define DATA_SQLITE_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "data/rows.h"
#include "data/values.h"

struct fault;
struct sqlite_conn;
struct sqlite_cursor;

enum {
    SQLITE_CONN_STATEMENTS_MAX = 64, /* prepared ones kept; the least recently used goes first */
    SQLITE_CONN_CURSORS_MAX    = 64, /* loops over rows open at once in one transaction */
};

enum sqlite_role {
    ROLE_WRITER, /* for a database in memory: the only one */
    ROLE_READER, /* beside it; refuses to write */
};

/* When a piece of work has to end. */
struct sqlite_watch {
    uint64_t           deadline_ns; /* clock_mono_ns(); 0: never */
    const atomic_bool *cancelled;   /* borrowed until the next watch is set; NULL: never */
};

/* PATH ":memory:", also with a name behind it, is a database of this connection alone. The watch
 * stands for what follows too. */
int sqlite_conn_open(struct sqlite_conn **out, const char *path, enum sqlite_role role,
                     struct sqlite_watch watch, struct fault *fault);
/* NULL is fine. Rolls back what is open. */
void sqlite_conn_close(struct sqlite_conn *conn);

/* For what follows, until the next one. */
void sqlite_conn_watch(struct sqlite_conn *conn, struct sqlite_watch watch);

/* Any thread, while the connection is in use: ends a statement that does not look at its watch. */
void sqlite_conn_interrupt(struct sqlite_conn *conn);

/* --- statements ------------------------------------------------------------------------------ */

/* Returned for a statement that a reader, or a transaction that only reads, must not run: nothing
 * was done. */
enum { SQLITE_CONN_WRITES = 1 };

/* SQL is one statement; $1, $2, ... are bound by their names. ROWS is initialized and empty. */
int sqlite_conn_run(struct sqlite_conn *conn, struct str sql, const struct values *params,
                    enum rows_keep keep, struct rows *rows, struct fault *fault);

/* The first batch of a result. *CURSOR is NULL when that was all of it. */
int sqlite_conn_open_cursor(struct sqlite_conn *conn, struct str sql, const struct values *params,
                            struct rows *rows, struct sqlite_cursor **cursor, struct fault *fault);
/* The next one. The cursor is closed when ROWS is done, and after a fault. */
int sqlite_conn_fetch(struct sqlite_conn *conn, struct sqlite_cursor *cursor, struct rows *rows,
                      struct fault *fault);
/* For one that is not read to its end. */
void sqlite_conn_close_cursor(struct sqlite_conn *conn, struct sqlite_cursor *cursor);

/* Statements without parameters, one after the other, rows dropped. The fault's text begins with
 * the line ("14: ") that the failed one stands in. */
int sqlite_conn_script(struct sqlite_conn *conn, struct str text, struct fault *fault);

/* --- transactions ---------------------------------------------------------------------------- */

enum sqlite_tx {
    TX_WRITE,
    TX_READ,    /* one state of the database for all its statements */
    TX_MIGRATE, /* foreign keys are checked at the end alone, so that tables can be rebuilt */
};

int sqlite_conn_begin(struct sqlite_conn *conn, enum sqlite_tx tx, struct fault *fault);
/* The transaction is over in any case: a fault says that it was rolled back. */
int sqlite_conn_commit(struct sqlite_conn *conn, struct fault *fault);
/* Closes cursors too. Does nothing where nothing is open. */
void sqlite_conn_rollback(struct sqlite_conn *conn);
/* False also when SQLite itself rolled it back (disk full, an interrupted write). */
bool sqlite_conn_in_transaction(const struct sqlite_conn *conn);

enum sqlite_mark { MARK_SET, MARK_RELEASE, MARK_UNDO };
/* Savepoints inside a transaction; DEPTH names them. */
int sqlite_conn_mark(struct sqlite_conn *conn, enum sqlite_mark mark, unsigned depth,
                     struct fault *fault);

/* Before the first connection of the process. */
void sqlite_conn_setup(void);

#endif
