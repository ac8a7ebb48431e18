/* tests/support/sqlite_fixture.h - a process's SQLite with one loop, and calls to it that are awaited, for
 * unit tests. */
#ifndef TESTS_SUPPORT_SQLITE_FIXTURE_H
#define TESTS_SUPPORT_SQLITE_FIXTURE_H

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "data/sqlite.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop   *loop;
static struct pool   *pool;
static struct sqlite *sqlite;
static char           path[64];
static unsigned       dropped;
static unsigned       pending; /* started, neither done nor dropped */

static inline struct sqlite_db *open_at(const char *where, unsigned connections, unsigned waiting)
{
    struct sqlite_options options = { where, connections, waiting };
    struct sqlite_db     *db;

    CHECK_INT(sqlite_db_open(&db, sqlite, &options, NULL), 0);
    return db;
}

static inline void open_process_with(unsigned threads, unsigned queue_max)
{
    struct lane *lane;

    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(pool_open(&pool, NULL), 0);
    CHECK_INT(lane_open(&lane, pool, "sqlite", threads, queue_max, NULL), 0);
    CHECK_INT(sqlite_open(&sqlite, lane, NULL), 0);
    snprintf(path, sizeof(path), "/tmp/srv-sqlite-XXXXXX");
    CHECK(close(mkstemp(path)) == 0);
    dropped = pending = 0;
}

static inline void open_process(unsigned threads)
{
    open_process_with(threads, 64);
}

static inline void remove_file(const char *suffix)
{
    char name[80];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
}

static inline void close_process(void)
{
    sqlite_close(sqlite);
    pool_close(pool);
    loop_close(loop);
    remove_file("");
    remove_file("-wal");
    remove_file("-shm");
}

/* --- calls ----------------------------------------------------------------------------------- */

struct probe {
    struct sqlite_call call;
    bool               is_done;
};

static inline void on_done(struct sqlite_call *call)
{
    struct probe *probe = container_of(call, struct probe, call);

    probe->is_done = true;
    pending--;
    loop_break(loop);
}

static inline void on_drop(struct sqlite_call *call)
{
    sqlite_call_fini(call);
    free(container_of(call, struct probe, call));
    dropped++;
    pending--;
    loop_break(loop);
}

static inline struct probe *probe_new(enum sqlite_verb verb, const char *sql)
{
    struct probe *probe = calloc(1, sizeof(*probe));

    sqlite_call_init(&probe->call, verb);
    buf_add_str(&probe->call.sql, str_of(sql));
    probe->call.keep       = ROWS_ALL;
    probe->call.timeout_ms = 20000;
    probe->call.done       = on_done;
    probe->call.drop       = on_drop;
    return probe;
}

static inline void start(struct probe *probe, struct sqlite_db *db)
{
    CHECK_INT(sqlite_start(&probe->call, db, loop), 0);
    pending++;
}

static inline void await(struct probe *probe)
{
    while (!probe->is_done)
        loop_run(loop);
}

static inline void await_all(void)
{
    while (pending > 0)
        loop_run(loop);
}

static inline void free_probe(struct probe *probe)
{
    sqlite_call_fini(&probe->call);
    free(probe);
}

static inline void await_running(struct probe *probe)
{
    while (atomic_load(&probe->call.job.state) != JOB_RUNNING)
        sched_yield();
}

static inline const char *ask(struct sqlite_db *db, struct sqlite_lease *lease, const char *sql)
{
    static char   text[600];
    struct probe *probe = probe_new(CALL_RUN, sql);
    struct value  cell;
    struct str    rest;

    probe->call.lease = lease;
    start(probe, db);
    await(probe);
    text[0] = '\0';
    rest    = values_all(&probe->call.rows.cells);
    if (fault_is_set(&probe->call.fault))
        snprintf(text, sizeof(text), "%s: %s", probe->call.fault.code, probe->call.fault.text);
    else if (values_next(&rest, &cell) && cell.kind == VALUE_INT)
        snprintf(text, sizeof(text), "%lld", (long long)cell.integer);
    free_probe(probe);
    return text;
}

static inline struct sqlite_lease *begin(struct sqlite_db *db, enum sqlite_tx tx)
{
    struct probe        *probe = probe_new(CALL_BEGIN, "");
    struct sqlite_lease *lease;

    probe->call.tx = tx;
    start(probe, db);
    await(probe);
    CHECK(!fault_is_set(&probe->call.fault));
    lease = probe->call.lease;
    CHECK(lease);
    free_probe(probe);
    return lease;
}

static inline const char *end(struct sqlite_db *db, struct sqlite_lease *lease,
                              enum sqlite_verb verb)
{
    struct probe *probe = probe_new(verb, "");
    const char   *code;

    probe->call.lease = lease;
    start(probe, db);
    await(probe);
    code = probe->call.fault.code;
    free_probe(probe);
    sqlite_lease_close(lease);
    return code ? code : "";
}

/* CHECK_STR() evaluates its arguments more than once. */
#define CHECK_ANSWER(asked, want)                                                                  \
    do {                                                                                           \
        const char *answer = (asked);                                                              \
        CHECK_STR(answer, want);                                                                   \
    } while (0)

#define ENDLESS                                                                                    \
    "with recursive c (n) as (select 1 union all select n + 1 from c) select max(n) from c"

#endif
