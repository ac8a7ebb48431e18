/* One connection for several calls: a transaction, or a result that is read in batches. */
#include <stdlib.h>

#include "data/sqlite_impl.h"

/* Hands the seat back; the lease itself stays to be freed. */
static void end_lease(struct sqlite_lease *lease)
{
    lease->seat->lease = NULL;
    lease->seat        = NULL;
}

/* Not the last reference to the database: the lock is held. */
static void free_lease(struct sqlite_lease *lease)
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
void sqlite_lease_roll_back(struct sqlite_lease *lease)
{
    sqlite_db_ref(lease->db); /* the call's */
    if (sqlite_seat_take(lease->seat, &lease->last))
        return;
    sqlite_db_unref(lease->db, lease->last.home);
    sqlite_lease_end_here(lease);
    free_lease(lease);
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
    free_lease(container_of(call, struct sqlite_lease, last));
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
    lease->last.db    = db;
    lease->last.loop  = call->loop;
    lease->last.home  = call->home;
    lease->last.lease = lease;
    lease->last.done = lease->last.drop = last_is_done;
    sqlite_db_ref(db);
    return lease;
}

void sqlite_lease_close(struct sqlite_lease *lease)
{
    struct sqlite_db *db   = lease->db;
    struct inbox     *home = lease->last.home;
    struct list       refused;
    bool              over;

    list_init(&refused);
    sqlite_db_ref(db);
    pthread_mutex_lock(&db->lock);
    lease->closed = true;
    over          = !lease->seat;
    refuse_queue(lease, &refused);
    if (!over && !lease->seat->running)
        sqlite_seat_vacate(lease->seat, &refused);
    pthread_mutex_unlock(&db->lock);
    if (over)
        free_lease(lease);
    sqlite_call_refuse(&refused);
    sqlite_db_unref(db, home);
}

bool sqlite_lease_blocks(const struct sqlite_lease *lease)
{
    return lease->blocks;
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
        free_lease(lease);
}
