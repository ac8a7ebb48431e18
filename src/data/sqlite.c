/* A connection has a seat. Whoever sits there has the connection to itself: a call while it is in
 * the lane or runs, or a lease between its calls. When a call leaves, the thread that ran it puts
 * the next one into the lane: so a queue of writers costs no trip to a loop, and a thread never
 * stays with one database while others wait.
 *
 * One lock for each database guards its queues and seats. Taken under it: the lane's. Nothing that
 * may call back (inbox_post() can drop) happens under it: refused calls are collected and posted
 * after. */
#include "data/sqlite.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/loop.h"

struct sqlite {
    _Atomic(struct lane *) lane; /* borrowed; NULL: the process ends, nothing is asked any more */
    pthread_mutex_t        lock; /* the list, and the way of a database out of it */
    struct list            databases;
    bool                   closed; /* goes with its last database */
};

struct seat {
    struct sqlite_db    *db;
    struct list          link; /* a free reader's, in db->free_readers */
    struct list          all;  /* in db->readers */
    bool                 writes;
    struct sqlite_conn  *conn;    /* opened by the first call */
    struct sqlite_call  *running; /* in the lane or on its thread */
    struct sqlite_lease *lease;   /* who has the seat between calls */
};

struct sqlite_db {
    struct list    link; /* in sqlite->databases */
    struct sqlite *sqlite;
    char          *path; /* owned */
    bool           memory;
    atomic_uint    refs; /* who opened it, calls under way, leases */
    struct job     closing;

    pthread_mutex_t lock;
    struct seat     writer;
    struct list     readers, free_readers;
    unsigned        reader_count, readers_max;
    struct list     write_queue, read_queue;
    unsigned        waiting, waiting_max; /* in both queues and those of leases */
};

enum lease_kind {
    LEASE_TX,
    LEASE_CURSOR, /* over with the last row */
};

struct sqlite_lease {
    struct sqlite_db  *db;
    enum lease_kind    kind;
    bool               blocks;
    struct seat       *seat;  /* NULL: over, or not yet given */
    struct list        queue; /* calls behind the one that runs */
    bool               closed;
    struct sqlite_call last; /* rolls back */
};

/* --- references ------------------------------------------------------------------------------ */

static void free_sqlite(struct sqlite *sqlite)
{
    pthread_mutex_destroy(&sqlite->lock);
    free(sqlite);
}

static bool submit(struct sqlite *sqlite, struct job *job, struct inbox *home)
{
    struct lane *lane = atomic_load(&sqlite->lane);

    return lane && lane_submit(lane, job, home) == 0;
}

static void close_connections(struct sqlite_db *db)
{
    struct list *node;

    sqlite_conn_close(db->writer.conn);
    db->writer.conn = NULL;
    while ((node = list_take_first(&db->readers))) {
        struct seat *seat = container_of(node, struct seat, all);

        sqlite_conn_close(seat->conn);
        free(seat);
    }
}

/* Out of the registry: nobody finds it any more. */
static void forget_db(struct sqlite_db *db)
{
    struct sqlite *sqlite = db->sqlite;
    bool           last;

    pthread_mutex_lock(&sqlite->lock);
    list_remove(&db->link);
    last = sqlite->closed && list_is_empty(&sqlite->databases);
    pthread_mutex_unlock(&sqlite->lock);
    if (last)
        free_sqlite(sqlite);
}

static void free_db(struct sqlite_db *db)
{
    close_connections(db);
    forget_db(db);
    pthread_mutex_destroy(&db->lock);
    free(db->path);
    free(db);
}

/* Writing the log back into the file takes its time. */
static void run_closing(struct job *job)
{
    close_connections(container_of(job, struct sqlite_db, closing));
}

static void end_closing(struct job *job)
{
    free_db(container_of(job, struct sqlite_db, closing));
}

static void db_ref(struct sqlite_db *db)
{
    atomic_fetch_add_explicit(&db->refs, 1, memory_order_relaxed);
}

static void db_unref(struct sqlite_db *db, struct inbox *home)
{
    if (atomic_fetch_sub_explicit(&db->refs, 1, memory_order_acq_rel) != 1)
        return;
    db->closing = (struct job){ .run = run_closing, .done = end_closing, .drop = end_closing };
    list_init(&db->closing.link);
    if (!submit(db->sqlite, &db->closing, home))
        free_db(db);
}

/* False: it is on its way out. */
static bool db_ref_if_alive(struct sqlite_db *db)
{
    unsigned refs = atomic_load_explicit(&db->refs, memory_order_relaxed);

    while (refs > 0)
        if (atomic_compare_exchange_weak(&db->refs, &refs, refs + 1))
            return true;
    return false;
}

/* --- opening --------------------------------------------------------------------------------- */

int sqlite_open(struct sqlite **out, struct lane *lane, struct err *err)
{
    struct sqlite *sqlite = calloc(1, sizeof(*sqlite));

    if (!sqlite)
        return err_set(err, ERR_MEMORY, "no memory for the databases");
    sqlite_conn_setup();
    atomic_init(&sqlite->lane, lane);
    pthread_mutex_init(&sqlite->lock, NULL);
    list_init(&sqlite->databases);
    *out = sqlite;
    return 0;
}

void sqlite_close(struct sqlite *sqlite)
{
    bool last;

    if (!sqlite)
        return;
    atomic_store(&sqlite->lane, NULL);
    pthread_mutex_lock(&sqlite->lock);
    sqlite->closed = true;
    last           = list_is_empty(&sqlite->databases);
    pthread_mutex_unlock(&sqlite->lock);
    if (last)
        free_sqlite(sqlite);
}

/* Two ways to one file must not give two writers: the folder's symlinks are followed, and the
 * file's where it is there. NULL: no memory. */
static char *real_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    char        resolved[PATH_MAX];
    char        folder[PATH_MAX];
    char       *joined = NULL;

    if (!slash || realpath(path, resolved))
        return strdup(slash ? resolved : path);
    if ((size_t)(slash - path) >= sizeof(folder))
        return strdup(path);
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    if (!realpath(*folder ? folder : "/", resolved))
        return strdup(path);
    if (asprintf(&joined, "%s%s", resolved[1] ? resolved : "", slash) < 0)
        return NULL;
    return joined;
}

static void init_seat(struct seat *seat, struct sqlite_db *db, bool writes)
{
    *seat = (struct seat){ .db = db, .writes = writes };
    list_init(&seat->link);
    list_init(&seat->all);
}

/* Takes PATH. */
static struct sqlite_db *new_db(struct sqlite *sqlite, char *path)
{
    struct sqlite_db *db = calloc(1, sizeof(*db));

    if (!db) {
        free(path);
        return NULL;
    }
    db->sqlite = sqlite;
    db->path   = path;
    db->memory = str_starts_with(str_of(path), STR(":memory:"));
    atomic_init(&db->refs, 1);
    pthread_mutex_init(&db->lock, NULL);
    init_seat(&db->writer, db, true);
    list_init(&db->link);
    list_init(&db->readers);
    list_init(&db->free_readers);
    list_init(&db->write_queue);
    list_init(&db->read_queue);
    return db;
}

/* Registry locked. */
static struct sqlite_db *find_db(struct sqlite *sqlite, const char *path)
{
    list_each(node, &sqlite->databases)
    {
        struct sqlite_db *db = container_of(node, struct sqlite_db, link);

        if (strcmp(db->path, path) == 0 && db_ref_if_alive(db))
            return db;
    }
    return NULL;
}

static struct sqlite_db *find_or_new(struct sqlite *sqlite, char *path)
{
    struct sqlite_db *db;

    pthread_mutex_lock(&sqlite->lock);
    db = find_db(sqlite, path);
    if (db)
        free(path);
    else if ((db = new_db(sqlite, path)))
        list_append(&sqlite->databases, &db->link);
    pthread_mutex_unlock(&sqlite->lock);
    return db;
}

int sqlite_db_open(struct sqlite_db **out, struct sqlite *sqlite,
                   const struct sqlite_options *options, struct err *err)
{
    char             *path = real_path(options->path);
    struct sqlite_db *db   = path ? find_or_new(sqlite, path) : NULL;

    assert(options->connections_max >= 2);
    if (!db)
        return err_set(err, ERR_MEMORY, "no memory for the database %s", options->path);
    pthread_mutex_lock(&db->lock);
    db->readers_max = options->connections_max - 1;
    db->waiting_max = options->waiting_max;
    pthread_mutex_unlock(&db->lock);
    *out = db;
    return 0;
}

void sqlite_db_close(struct sqlite_db *db, struct inbox *home)
{
    if (db)
        db_unref(db, home);
}

/* --- seats; all with the database locked ------------------------------------------------------- */

static void on_run(struct job *job);
static void on_job_done(struct job *job);
static void on_job_drop(struct job *job);

/* False: the lane does not take it. */
static bool sit_down(struct seat *seat, struct sqlite_call *call)
{
    call->job = (struct job){ .run = on_run, .done = on_job_done, .drop = on_job_drop };
    list_init(&call->job.link);
    call->ran     = false;
    call->waiting = false;
    call->seat    = seat;
    seat->running = call;
    if (submit(seat->db->sqlite, &call->job, call->home))
        return true;
    call->seat    = NULL;
    seat->running = NULL;
    return false;
}

static struct sqlite_call *take_waiting(struct sqlite_db *db, struct list *queue)
{
    struct list *node = list_take_first(queue);

    if (!node)
        return NULL;
    db->waiting--;
    return container_of(node, struct sqlite_call, link);
}

static struct list *queue_of(struct sqlite_db *db, const struct sqlite_call *call)
{
    if (call->lease)
        return &call->lease->queue;
    return call->writes ? &db->write_queue : &db->read_queue;
}

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
    db_unref(lease->db, lease->last.home);
    free(lease);
}

static void end_lease_here(struct sqlite_lease *lease)
{
    if (lease->seat->conn)
        sqlite_conn_rollback(lease->seat->conn);
    end_lease(lease);
}

/* A lease whose holder has let go is rolled back on the pool. When the lane takes no more work,
 * the process is about to end: then it is done here. */
static void roll_back_lease(struct sqlite_lease *lease)
{
    db_ref(lease->db); /* the call's */
    if (sit_down(lease->seat, &lease->last))
        return;
    db_unref(lease->db, lease->last.home);
    end_lease_here(lease);
    free_lease(lease);
}

static struct sqlite_call *next_call(struct seat *seat)
{
    struct sqlite_db *db = seat->db;

    if (seat->lease)
        return take_waiting(db, &seat->lease->queue);
    return take_waiting(db, seat->writes ? &db->write_queue : &db->read_queue);
}

static const char LANE_FULL[] = "too many statements wait for a thread";

static void put_back(struct seat *seat)
{
    if (!seat->writes && !seat->lease)
        list_prepend(&seat->db->free_readers, &seat->link);
}

/* The seat is free: for its lease's next call, the next of the queue, or nobody. */
static void vacate(struct seat *seat, struct list *refused)
{
    struct sqlite_call *call;

    seat->running = NULL;
    if (seat->lease && seat->lease->closed)
        roll_back_lease(seat->lease);
    while (!seat->running && (call = next_call(seat)))
        if (!sit_down(seat, call)) {
            fault_set(&call->fault, "busy", "%s", LANE_FULL);
            list_append(refused, &call->link);
        }
    if (!seat->running)
        put_back(seat);
}

static struct seat *new_reader(struct sqlite_db *db)
{
    struct seat *seat = db->reader_count < db->readers_max ? malloc(sizeof(*seat)) : NULL;

    if (!seat)
        return NULL;
    init_seat(seat, db, false);
    list_append(&db->readers, &seat->all);
    db->reader_count++;
    return seat;
}

/* NULL: wait. */
static struct seat *find_seat(struct sqlite_db *db, const struct sqlite_call *call)
{
    struct list *node;
    struct seat *seat = &db->writer;

    if (call->lease)
        seat = call->lease->seat;
    else if (!call->writes)
        return (node = list_take_first(&db->free_readers)) ? container_of(node, struct seat, link)
                                                           : new_reader(db);
    else if (seat->lease)
        return NULL;
    return seat->running ? NULL : seat;
}

static void start_waiting(struct sqlite_db *db, struct sqlite_call *call)
{
    list_append(queue_of(db, call), &call->link);
    call->waiting = true;
    db->waiting++;
}

static void stop_waiting(struct sqlite_db *db, struct sqlite_call *call)
{
    list_remove(&call->link);
    call->waiting = false;
    db->waiting--;
}

/* --- refused calls ------------------------------------------------------------------------------ */

static void come_home(struct sqlite_call *call);
static void be_dropped(struct sqlite_call *call);

static void deliver_refusal(struct message *message)
{
    come_home(container_of(message, struct sqlite_call, refusal));
}

static void drop_refusal(struct message *message)
{
    be_dropped(container_of(message, struct sqlite_call, refusal));
}

/* Locked. Nobody waits any more in a lease that is over. */
static void refuse_queue(struct sqlite_lease *lease, struct list *refused)
{
    struct sqlite_call *call;

    while ((call = take_waiting(lease->db, &lease->queue))) {
        call->waiting = false;
        fault_set(&call->fault, "closed", "the transaction has ended");
        list_append(refused, &call->link);
    }
}

/* Unlocked. */
static void send_home(struct list *refused)
{
    struct list *node;

    while ((node = list_take_first(refused))) {
        struct sqlite_call *call = container_of(node, struct sqlite_call, link);

        call->refusal = (struct message){ .deliver = deliver_refusal, .drop = drop_refusal };
        inbox_post(call->home, &call->refusal);
    }
}

/* --- leases -------------------------------------------------------------------------------------- */

static void last_is_done(struct sqlite_call *call)
{
    free_lease(container_of(call, struct sqlite_lease, last));
}

static struct sqlite_lease *new_lease(struct sqlite_db *db, const struct sqlite_call *call)
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
    db_ref(db);
    return lease;
}

void sqlite_lease_close(struct sqlite_lease *lease)
{
    struct sqlite_db *db   = lease->db;
    struct inbox     *home = lease->last.home;
    struct list       refused;
    bool              over;

    list_init(&refused);
    db_ref(db);
    pthread_mutex_lock(&db->lock);
    lease->closed = true;
    over          = !lease->seat;
    refuse_queue(lease, &refused);
    if (!over && !lease->seat->running)
        vacate(lease->seat, &refused);
    pthread_mutex_unlock(&db->lock);
    if (over)
        free_lease(lease);
    send_home(&refused);
    db_unref(db, home);
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
static void settle_lease(struct sqlite_call *call, struct seat *seat, struct list *refused)
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

/* --- a call on the pool ----------------------------------------------------------------------------- */

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
    call->lease = new_lease(call->db, call);
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

static void perform(struct sqlite_call *call)
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
        settle_lease(call, seat, &refused);
    vacate(seat, &refused);
    pthread_mutex_unlock(&db->lock);
    send_home(&refused);
}

static void on_run(struct job *job)
{
    struct sqlite_call *call = container_of(job, struct sqlite_call, job);

    perform(call);
    leave(call);
}

/* --- a call's way home --------------------------------------------------------------------------------- */

static int enqueue(struct sqlite_call *call);

static void be_done(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct inbox     *home = call->home;

    call->done(call);
    db_unref(db, home);
}

/* Any thread. Nobody will ever hold what the call was given. */
static void be_dropped(struct sqlite_call *call)
{
    struct sqlite_db *db   = call->db;
    struct inbox     *home = call->home;

    if (call->leased)
        sqlite_lease_close(call->lease);
    call->drop(call);
    db_unref(db, home);
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
        end_lease_here(call->lease);
    vacate(seat, &refused);
    pthread_mutex_unlock(&db->lock);
    send_home(&refused);
}

/* Any thread. */
static void on_job_drop(struct job *job)
{
    struct sqlite_call *call = container_of(job, struct sqlite_call, job);

    if (!call->ran)
        give_up_seat(call);
    be_dropped(call);
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
        stop_waiting(db, call);
    pthread_mutex_unlock(&db->lock);
    if (!late) /* it runs, and its watch ends it */
        return;
    fault_set(&call->fault, "timeout", "no connection became free in time");
    come_home(call);
}

void sqlite_call_init(struct sqlite_call *call, enum sqlite_verb verb)
{
    *call = (struct sqlite_call){ .verb = verb };
    buf_init(&call->sql, INT_MAX);
    values_init(&call->params, INT_MAX);
    rows_init(&call->rows);
    list_init(&call->link);
    list_init(&call->job.link);
    timer_init(&call->wait_limit, on_wait_limit);
}

void sqlite_call_fini(struct sqlite_call *call)
{
    buf_fini(&call->sql);
    values_fini(&call->params);
    rows_fini(&call->rows);
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
    seat = find_seat(db, call);
    if (seat && sit_down(seat, call))
        return 0;
    if (seat) {
        put_back(seat);
        return refuse_busy(call, LANE_FULL);
    }
    if (db->waiting >= db->waiting_max)
        return refuse_busy(call, "too many statements wait for a connection");
    start_waiting(db, call);
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
    call->deadline_ns = call->timeout_ms ? clock_mono_ns() + call->timeout_ms * 1000000 : 0;
    db_ref(db);
    rc = enqueue(call);
    if (rc != 0)
        db_unref(db, call->home);
    return rc;
}

/* Locked. True: it does not run and never will. */
static bool take_back(struct sqlite_call *call, struct list *refused)
{
    struct seat *seat = call->seat;

    if (call->waiting) {
        stop_waiting(call->db, call);
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
    vacate(seat, refused);
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
    send_home(&refused);
    if (ours)
        be_dropped(call);
    else
        call->orphaned = true;
}
