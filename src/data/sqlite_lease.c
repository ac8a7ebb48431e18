/* One connection for several calls: a transaction, or a result that is read in batches. */
#include "data/sqlite_lease.h"

#include <stdlib.h>

#include "data/sqlite_db.h"
#include "data/sqlite_impl.h"
#include "data/sqlite_seat.h"

/* Hands the seat back; the lease itself stays to be freed. */
static void end_lease(struct sqlite_lease *lease)
{
    lease->seat->lease = NULL;
    lease->seat        = NULL;
}

/* Not the last reference to the database: the lock is held. */
void sqlite_lease_free(struct sqlite_lease *lease)
{
    sqlite_call_fini(&lease->last);
    sqlite_db_unref(lease->db, lease->last.home);
    free(lease);
}

void sqlite_lease_end_here(struct sqlite_lease *lease)
{
    if (lease->seat->conn)
        sqlite_conn_rollback(lease->seat->conn);
    end_lease(lease);
}

/* A lease whose holder has let go is rolled back on the pool. When the lane takes no more work,
 * the process is about to end: then it is done here. */
static void roll_back(struct sqlite_lease *lease)
{
    sqlite_db_ref(lease->db); /* the call's */
    if (sqlite_seat_take(lease->seat, &lease->last))
        return;
    sqlite_db_unref(lease->db, lease->last.home);
    sqlite_lease_end_here(lease);
    sqlite_lease_free(lease);
}

static struct sqlite_call *next_call(struct seat *seat)
{
    struct sqlite_db *db = seat->db;

    if (seat->lease)
        return sqlite_seat_take_waiting(db, &seat->lease->queue);
    return sqlite_seat_take_waiting(db, seat->writes ? &db->write_queue : &db->read_queue);
}

void sqlite_lease_vacate(struct seat *seat, struct list *refused)
{
    struct sqlite_call *call;

    seat->running = NULL;
    if (seat->lease && seat->lease->closed)
        roll_back(seat->lease);
    while (!seat->running && (call = next_call(seat)))
        if (!sqlite_seat_take(seat, call)) {
            fault_set(&call->fault, "busy", "too many statements wait for a thread");
            list_append(refused, &call->link);
        }
    if (!seat->running)
        sqlite_seat_put_back(seat);
}

/* Locked. Nobody waits any more in a lease that is over. */
static void refuse_queue(struct sqlite_lease *lease, struct list *refused)
{
    struct sqlite_call *call;

    while ((call = sqlite_seat_take_waiting(lease->db, &lease->queue))) {
        call->waiting = false;
        fault_set(&call->fault, "closed", "the transaction has ended");
        list_append(refused, &call->link);
    }
}

static void last_is_done(struct sqlite_call *call)
{
    sqlite_lease_free(container_of(call, struct sqlite_lease, last));
}

struct sqlite_lease *sqlite_lease_new(struct sqlite_db *db, const struct sqlite_call *call)
{
    struct sqlite_lease *lease = calloc(1, sizeof(*lease));

    if (!lease)
        return NULL;
    lease->db     = db;
    lease->kind   = call->verb == CALL_BEGIN ? LEASE_TX : LEASE_CURSOR;
    lease->blocks = db->memory || (call->verb == CALL_BEGIN && call->tx != TX_READ);
    list_init(&lease->queue);
    sqlite_call_init(&lease->last, CALL_ROLLBACK);
    lease->last.job =
        (struct job){ .run = call->job.run, .done = call->job.done, .drop = call->job.drop };
    list_init(&lease->last.job.link);
    lease->last.db    = db;
    lease->last.loop  = call->loop;
    lease->last.home  = call->home;
    lease->last.lease = lease;
    lease->last.done = lease->last.drop = last_is_done;
    sqlite_db_ref(db);
    return lease;
}

bool sqlite_lease_let_go(struct sqlite_lease *lease, struct list *refused)
{
    lease->closed = true;
    refuse_queue(lease, refused);
    if (!lease->seat)
        return true;
    if (!lease->seat->running)
        sqlite_lease_vacate(lease->seat, refused);
    return false;
}

/* Locked. COMMIT and ROLLBACK end it, and the last batch of a cursor's own. */
static bool ends_lease(const struct sqlite_call *call)
{
    if (call->verb == CALL_COMMIT || call->verb == CALL_ROLLBACK)
        return true;
    return call->lease->kind == LEASE_CURSOR && call->verb == CALL_FETCH &&
           (call->rows.done || fault_is_set(&call->fault));
}

/* Locked; CALL has run on SEAT. A lease that was closed meanwhile has no holder to free it. */
void sqlite_lease_settle(struct sqlite_call *call, struct seat *seat, struct list *refused)
{
    struct sqlite_lease *lease = call->lease;

    if (!ends_lease(call)) {
        lease->seat = seat;
        seat->lease = lease;
        return;
    }
    end_lease(lease);
    refuse_queue(lease, refused);
    if (lease->closed && call != &lease->last)
        sqlite_lease_free(lease);
}
