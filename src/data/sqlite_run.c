#include "data/sqlite_run.h"

#include "data/sqlite_impl.h"
#include "data/sqlite_lease.h"

static struct sqlite_watch watch_of(const struct sqlite_call *call)
{
    return (struct sqlite_watch){ call->deadline_ns, &call->job.cancelled };
}

/* A connection is made where it is first needed. sqlite_cancel() looks at it under the lock. */
static int be_connected(struct sqlite_call *call)
{
    struct seat        *seat = call->seat;
    enum sqlite_role    role = seat->writes ? ROLE_WRITER : ROLE_READER;
    struct sqlite_conn *conn;

    if (seat->conn)
        return 0;
    if (sqlite_conn_open(&conn, seat->db->path, role, watch_of(call), &call->fault) != 0)
        return -1;
    pthread_mutex_lock(&seat->db->lock);
    seat->conn = conn;
    pthread_mutex_unlock(&seat->db->lock);
    return 0;
}

static int no_memory(struct sqlite_call *call)
{
    return fault_set(&call->fault, "unavailable", "no memory for a lease");
}

static int make_lease(struct sqlite_call *call)
{
    call->lease = sqlite_lease_new(call->db, call);
    if (!call->lease)
        return no_memory(call);
    call->leased = true;
    return 0;
}

static void begin(struct sqlite_call *call, struct sqlite_conn *conn)
{
    if (sqlite_conn_begin(conn, call->tx, &call->fault) == 0 && make_lease(call) != 0)
        sqlite_conn_rollback(conn);
}

static void run(struct sqlite_call *call, struct sqlite_conn *conn, enum rows_keep keep)
{
    if (sqlite_conn_run(conn, buf_str(&call->sql), &call->params, keep, &call->rows,
                        &call->fault) == SQLITE_CONN_WRITES)
        call->misplaced = true;
}

/* The only connection of a database in memory is not left to a loop that may ask for it itself:
 * there the rows are read whole. */
static void open_cursor(struct sqlite_call *call, struct sqlite_conn *conn)
{
    int rc;

    if (call->db->memory && !call->lease) {
        run(call, conn, ROWS_ALL);
        return;
    }
    rc = sqlite_conn_open_cursor(conn, buf_str(&call->sql), &call->params, &call->rows,
                                 &call->cursor, &call->fault);
    if (rc == SQLITE_CONN_WRITES)
        call->misplaced = true;
    if (call->cursor && !call->lease && make_lease(call) != 0) {
        sqlite_conn_close_cursor(conn, call->cursor);
        call->cursor = NULL;
    }
}

static void perform_on(struct sqlite_call *call, struct sqlite_conn *conn)
{
    struct fault *fault = &call->fault;

    switch (call->verb) {
    case CALL_RUN: run(call, conn, call->keep); break;
    case CALL_CURSOR: open_cursor(call, conn); break;
    case CALL_FETCH: sqlite_conn_fetch(conn, call->cursor, &call->rows, fault); break;
    case CALL_SCRIPT: sqlite_conn_script(conn, buf_str(&call->sql), fault); break;
    case CALL_BEGIN: begin(call, conn); break;
    case CALL_COMMIT: sqlite_conn_commit(conn, fault); break;
    case CALL_ROLLBACK: sqlite_conn_rollback(conn); break;
    case CALL_MARK: sqlite_conn_mark(conn, call->mark, call->depth, fault); break;
    }
}

/* SQLite ends a transaction itself when a write is interrupted or the disk is full. What follows
 * must not run outside it. */
static bool is_stranded(const struct sqlite_call *call)
{
    bool ends = call->verb == CALL_COMMIT || call->verb == CALL_ROLLBACK;

    return call->lease && call->lease->kind == LEASE_TX && !ends &&
           !sqlite_conn_in_transaction(call->seat->conn);
}

void sqlite_run(struct sqlite_call *call)
{
    if (be_connected(call) != 0)
        return;
    sqlite_conn_watch(call->seat->conn, watch_of(call));
    if (is_stranded(call)) {
        fault_set(&call->fault, "conflict", "the transaction was rolled back by an earlier fault");
        return;
    }
    perform_on(call, call->seat->conn);
    if (call->misplaced && call->lease) {
        call->misplaced = false;
        fault_set(&call->fault, "sql", "a readonly transaction does not write");
    }
}
