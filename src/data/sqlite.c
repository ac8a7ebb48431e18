/* The way of a call: it waits or gets a seat, runs on the pool, comes home to its loop. */
#include "data/sqlite.h"

#include <assert.h>
#include <ctype.h>

#include "base/clock.h"
#include "base/err.h"
#include "data/sqlite_impl.h"
#include "data/sqlite_lease.h"
#include "data/sqlite_run.h"
#include "data/sqlite_seat.h"
#include "ev/loop.h"

/* --- a call's way home --------------------------------------------------------------------------------- */

static int enqueue(struct sqlite_call *call);

static void be_done(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct inbox     *home = call->home;

    call->done(call);
    sqlite_db_unref(db, home);
}

/* Any thread. Nobody will ever hold what the call was given. */
static void be_dropped(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct inbox     *home = call->home;

    if (call->leased)
        sqlite_lease_close(call->lease);
    call->drop(call);
    sqlite_db_unref(db, home);
}

/* Loop's thread. A statement that turned out to write takes a second turn, with the writer. */
static void come_home(struct sqlite_call *call)
{
    timer_stop(&call->wait_limit, call->loop);
    if (call->orphaned) {
        be_dropped(call);
    } else if (call->misplaced) {
        call->misplaced = false;
        call->writes    = true;
        if (enqueue(call) != 0)
            be_done(call);
    } else {
        be_done(call);
    }
}

static void on_job_done(struct job *job)
{
    come_home(container_of(job, struct sqlite_call, job));
}

/* --- refused calls ------------------------------------------------------------------------------ */

static void deliver_refusal(struct message *message)
{
    come_home(container_of(message, struct sqlite_call, refusal));
}

static void drop_refusal(struct message *message)
{
    be_dropped(container_of(message, struct sqlite_call, refusal));
}

/* Unlocked. Posts each to its loop. */
static void refuse(struct list *refused)
{
    struct list *node;

    while ((node = list_take_first(refused))) {
        struct sqlite_call *call = container_of(node, struct sqlite_call, link);

        call->refusal = (struct message){ .deliver = deliver_refusal, .drop = drop_refusal };
        inbox_post(call->home, &call->refusal);
    }
}

/* --- calls that the pool dropped ---------------------------------------------------------------- */

/* It never ran, and will not. */
static void give_up_seat(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct seat      *seat = call->seat;
    struct list       refused;

    list_init(&refused);
    pthread_mutex_lock(&db->lock);
    call->seat = NULL;
    if (call->lease && call == &call->lease->last)
        sqlite_lease_end_here(call->lease);
    sqlite_lease_vacate(seat, &refused);
    pthread_mutex_unlock(&db->lock);
    refuse(&refused);
}

/* Any thread. */
static void on_job_drop(struct job *job)
{
    struct sqlite_call *call = container_of(job, struct sqlite_call, job);

    if (!call->ran)
        give_up_seat(call);
    be_dropped(call);
}

/* --- on the pool ----------------------------------------------------------------------------- */

static void leave(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct seat      *seat = call->seat;
    struct list       refused;

    list_init(&refused);
    pthread_mutex_lock(&db->lock);
    call->ran  = true;
    call->seat = NULL;
    if (call->lease)
        sqlite_lease_settle(call, seat, &refused);
    sqlite_lease_vacate(seat, &refused);
    pthread_mutex_unlock(&db->lock);
    refuse(&refused);
}

static void on_run(struct job *job)
{
    struct sqlite_call *call = container_of(job, struct sqlite_call, job);

    sqlite_run(call);
    leave(call);
}

/* --- calls -------------------------------------------------------------------------------------------- */

static void on_wait_limit(struct timer *timer)
{
    struct sqlite_call *call = container_of(timer, struct sqlite_call, wait_limit);
    struct sqlite_db   *db   = call->db;
    bool                late;

    pthread_mutex_lock(&db->lock);
    late = call->waiting;
    if (late)
        sqlite_seat_stop_waiting(db, call);
    pthread_mutex_unlock(&db->lock);
    if (!late) /* it runs, and its watch ends it */
        return;
    fault_set(&call->fault, "timeout", "no connection became free in time");
    come_home(call);
}

/* Comments and brackets may stand in front. */
static struct str first_word(struct str sql)
{
    size_t len = 0;

    while (sql.len && !isalpha((unsigned char)*sql.at)) {
        if (str_starts_with(sql, STR("--"))) {
            sql = str_from(sql, str_find(sql, '\n'));
        } else if (str_starts_with(sql, STR("/*"))) {
            const char *end = memmem(sql.at + 2, sql.len - 2, "*/", 2);

            sql = end ? str_from(sql, (size_t)(end + 2 - sql.at)) : STR_NONE;
        } else {
            sql = str_from(sql, 1);
        }
    }
    while (len < sql.len && isalpha((unsigned char)sql.at[len]))
        len++;
    return str_make(sql.at, len);
}

/* A guess that saves a way: a reader finds out about `with ... insert`, and the writer could read
 * as well. */
static bool seems_to_read(struct str sql)
{
    static const struct str WORDS[] = { STR_INIT("select"), STR_INIT("with"), STR_INIT("values"),
                                        STR_INIT("explain"), STR_INIT("pragma") };
    struct str              word    = first_word(sql);

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (str_is_nocase(word, WORDS[i]))
            return true;
    return false;
}

bool sqlite_is_for_writer(const struct sqlite_db *db, const struct sqlite_call *call)
{
    if (db->memory)
        return true;
    if (call->verb == CALL_BEGIN)
        return call->tx != TX_READ;
    return !seems_to_read(buf_str(&call->sql));
}

static int refuse_busy(struct sqlite_call *call, const char *why)
{
    fault_set(&call->fault, "busy", "%s", why);
    return ERR_BUSY;
}

/* Locked. */
static int place(struct sqlite_db *db, struct sqlite_call *call)
{
    struct seat *seat;

    if (call->lease && !call->lease->seat) {
        fault_set(&call->fault, "closed", "the transaction has ended");
        return ERR_CLOSED;
    }
    seat = sqlite_seat_find(db, call);
    if (seat && sqlite_seat_take(seat, call))
        return 0;
    if (seat) {
        sqlite_seat_put_back(seat);
        return refuse_busy(call, "too many statements wait for a thread");
    }
    if (db->waiting >= db->waiting_max)
        return refuse_busy(call, "too many statements wait for a connection");
    sqlite_seat_start_waiting(db, call);
    return 0;
}

static int enqueue(struct sqlite_call *call)
{
    struct sqlite_db *db = call->db;
    uint64_t          now;
    bool              waits;
    int               rc;

    pthread_mutex_lock(&db->lock);
    rc    = place(db, call);
    waits = call->waiting;
    pthread_mutex_unlock(&db->lock);
    if (rc == 0 && waits && call->deadline_ns) {
        now = clock_mono_ns();
        timer_start_ns(&call->wait_limit, call->loop,
                       call->deadline_ns > now ? call->deadline_ns - now : 0);
    }
    return rc;
}

int sqlite_start(struct sqlite_call *call, struct sqlite_db *db, struct loop *loop)
{
    int rc;

    assert(call->done && call->drop);
    call->db          = db;
    call->loop        = loop;
    call->home        = loop_inbox(loop);
    call->writes      = sqlite_is_for_writer(db, call);
    call->job         = (struct job){ .run = on_run, .done = on_job_done, .drop = on_job_drop };
    call->deadline_ns = call->timeout_ms ? clock_mono_ns() + call->timeout_ms * NS_PER_MS : 0;
    list_init(&call->job.link);
    timer_init(&call->wait_limit, on_wait_limit);
    sqlite_db_ref(db);
    rc = enqueue(call);
    if (rc != 0)
        sqlite_db_unref(db, call->home);
    return rc;
}

/* Locked. True: it does not run and never will. */
static bool take_back(struct sqlite_call *call, struct list *refused)
{
    struct seat *seat = call->seat;

    if (call->waiting) {
        sqlite_seat_stop_waiting(call->db, call);
        return true;
    }
    if (!seat) /* on its way home */
        return false;
    if (!job_cancel(&call->job)) {
        if (seat->conn)
            sqlite_conn_interrupt(seat->conn);
        return false;
    }
    call->seat = NULL;
    sqlite_lease_vacate(seat, refused);
    return true;
}

void sqlite_cancel(struct sqlite_call *call)
{
    struct sqlite_db *db = call->db;
    struct list       refused;
    bool              ours;

    list_init(&refused);
    timer_stop(&call->wait_limit, call->loop);
    pthread_mutex_lock(&db->lock);
    ours = take_back(call, &refused);
    pthread_mutex_unlock(&db->lock);
    refuse(&refused);
    if (ours)
        be_dropped(call);
    else
        call->orphaned = true;
}

/* --- leases ------------------------------------------------------------------------------------ */

void sqlite_lease_close(struct sqlite_lease *lease)
{
    struct sqlite_db *db   = lease->db;
    struct inbox     *home = lease->last.home;
    struct list       refused;
    bool              over;

    list_init(&refused);
    sqlite_db_ref(db);
    pthread_mutex_lock(&db->lock);
    over = sqlite_lease_let_go(lease, &refused);
    pthread_mutex_unlock(&db->lock);
    if (over)
        sqlite_lease_free(lease);
    refuse(&refused);
    sqlite_db_unref(db, home);
}

bool sqlite_lease_blocks(const struct sqlite_lease *lease)
{
    return lease->blocks;
}
