/* Databases: opened by their path, closed with their last user. */
#include "data/sqlite_db.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "data/sqlite_impl.h"
#include "data/sqlite_seat.h"

/* --- references ------------------------------------------------------------------------------ */

static void free_sqlite(struct sqlite *sqlite)
{
    pthread_mutex_destroy(&sqlite->lock);
    free(sqlite);
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

void sqlite_db_ref(struct sqlite_db *db)
{
    atomic_fetch_add_explicit(&db->refs, 1, memory_order_relaxed);
}

void sqlite_db_unref(struct sqlite_db *db, struct inbox *home)
{
    if (atomic_fetch_sub_explicit(&db->refs, 1, memory_order_acq_rel) != 1)
        return;
    db->closing = (struct job){ .run = run_closing, .done = end_closing, .drop = end_closing };
    list_init(&db->closing.link);
    if (!sqlite_submit(db->sqlite, &db->closing, home))
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
    sqlite_seat_init(&db->writer, db, true);
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
        sqlite_db_unref(db, home);
}
