/* A lease is held by the task that began it: however that ends, the transaction is rolled back, the
 * COPY broken off, the subscription over. */
#include "bind/lpg_lease.h"

#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lpg_query.h"
#include "bind/lrows.h"
#include "bind/lstr.h"
#include "data/pg.h"
#include "data/pg_copy.h"

enum {
    NOTES_MAX        = 1000, /* that wait to be taken */
    COPY_PIECE_BYTES = 64 * 1024,
};

static const char ENDED[] = "the transaction has ended";

struct note {
    struct list link;
    size_t      len;
    char        text[];
};

/* --- life -------------------------------------------------------------------------------------- */

static void drop_notes(struct lpg_lease *lease)
{
    struct list *node;

    while ((node = list_take_first(&lease->notes)))
        free(container_of(node, struct note, link));
    lease->note_count = 0;
}

static void wake(struct lpg_lease *lease)
{
    struct task *task = lease->waiter;

    lease->waiter = NULL;
    if (task)
        task_wake(task);
}

static void end_lease(struct lpg_lease *lease, bool spoiled)
{
    struct pg_lease *inner = lease->lease;

    lease->lease = NULL;
    task_unhold(&lease->held);
    wake(lease);
    drop_notes(lease);
    if (inner)
        inner->spoiled |= spoiled || lease->listens;
    pg_lease_close(inner);
}

static void release_lease(struct held *held)
{
    end_lease(container_of(held, struct lpg_lease, held), false);
}

int lpg_lease_new(lua_State *L)
{
    struct lpg_lease *lease = lclass_new(L, LPG_LEASE_METATABLE, sizeof(*lease));

    lease->held.release = release_lease;
    list_init(&lease->held.link);
    list_init(&lease->notes);
    return 1;
}

static int lease_gc(lua_State *L)
{
    end_lease(lpg_check_lease(L, 1), false);
    return 0;
}

/* lease:close([spoiled]) */
static int lease_close(lua_State *L)
{
    end_lease(lpg_check_lease(L, 1), lua_toboolean(L, 2));
    return 0;
}

/* lease:is_open() -> boolean */
static int lease_is_open(lua_State *L)
{
    lua_pushboolean(L, lpg_check_lease(L, 1)->lease != NULL);
    return 1;
}

/* --- transactions -------------------------------------------------------------------------------- */

static void on_event(struct pg_lease *inner)
{
    wake(inner->arg);
}

static void on_note(struct pg_lease *inner, struct str channel, struct str text)
{
    struct lpg_lease *lease = inner->arg;
    struct note      *note;

    if (!lease->listens)
        return;
    note = lease->note_count < NOTES_MAX ? malloc(sizeof(*note) + text.len) : NULL;
    if (!note) {
        lease->overflown = true;
        wake(lease);
        return;
    }
    note->len = text.len;
    memcpy(note->text, text.at, text.len);
    list_append(&lease->notes, &note->link);
    lease->note_count++;
    wake(lease);
}

static int push_begun(lua_State *L, void *op)
{
    struct lpg_query *query = op;
    struct lpg_lease *lease = lpg_check_lease(L, 1);

    if (fault_is_set(&query->call.fault))
        return lpg_query_push_fault(L, query);
    lease->lease           = query->call.lease;
    lease->lease->arg      = lease;
    lease->lease->on_event = on_event;
    lease->lease->on_note  = on_note;
    task_hold(query->task, &lease->held);
    lpg_query_free(query);
    lua_pushboolean(L, 1);
    return 1;
}

/* lease:begin(db, kind, timeout, [isolation]) -> outcome: true */
static int lease_begin(lua_State *L)
{
    static const char *const KINDS[]  = { "write", "read", "migrate", "none", NULL };
    static const char *const LEVELS[] = { "read committed", "repeatable read", "serializable",
                                          NULL };
    struct lpg_lease        *lease    = lpg_check_lease(L, 1);
    struct lpg_db           *db       = lpg_check_db(L, 2);
    int                      kind     = luaL_checkoption(L, 3, NULL, KINDS);
    bool                     limit    = lpg_has_limit(L, 4);
    int                      level    = luaL_checkoption(L, 5, LEVELS[0], LEVELS);
    struct lpg_query        *query;

    luaL_argcheck(L, !lease->lease, 1, "begun already");
    if (!db->pool)
        return lpg_refuse(L, "the database handle is closed");
    query                = lpg_query_new(L, PG_BEGIN, true);
    query->call.no_limit = !limit;
    if (kind != 3)
        buf_add_str(&query->call.sql, STR("begin"));
    if (!lua_isnoneornil(L, 5))
        buf_printf(&query->call.sql, " isolation level %s", LEVELS[level]);
    if (kind == 1)
        buf_add_str(&query->call.sql, STR(" read only"));
    return lpg_query_start(L, query, db->pool, push_begun);
}

/* The query has SQL in it, and is for the lease at 1. */
static int start(lua_State *L, struct lpg_lease *lease, struct lpg_query *query, int timeout_index,
                 task_push_fn push)
{
    query->call.lease    = lease->lease;
    query->call.no_limit = !lpg_has_limit(L, timeout_index);
    return lpg_query_start(L, query, lease->lease->pool, push);
}

static int push_true(lua_State *L, void *op)
{
    struct lpg_query *query = op;

    if (fault_is_set(&query->call.fault))
        return lpg_query_push_fault(L, query);
    lpg_query_free(query);
    lua_pushboolean(L, 1);
    return 1;
}

/* A transaction in which a statement has failed answers COMMIT with ROLLBACK. */
static int push_committed(lua_State *L, void *op)
{
    struct lpg_query *query = op;

    end_lease(lpg_check_lease(L, 1), false);
    if (!fault_is_set(&query->call.fault) &&
        strcmp(pg_rows_command(&query->call.rows), "ROLLBACK") == 0)
        fault_set(&query->call.fault, "sql",
                  "the transaction was rolled back: a statement in it had failed, and what it said "
                  "was not given back");
    return push_true(L, op);
}

static int push_rolled_back(lua_State *L, void *op)
{
    end_lease(lpg_check_lease(L, 1), false);
    return push_true(L, op);
}

static int end_transaction(lua_State *L, struct str sql, task_push_fn push)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    struct lpg_query *query;

    if (lpg_lease_is_over(lease))
        return lpg_refuse(L, ENDED);
    query = lpg_query_new(L, PG_RUN, true);
    buf_add_str(&query->call.sql, sql);
    lease->ending = true;
    return start(L, lease, query, 2, push);
}

/* lease:commit(timeout) -> outcome: true */
static int lease_commit(lua_State *L)
{
    return end_transaction(L, STR("commit"), push_committed);
}

/* lease:rollback(timeout) -> outcome: true */
static int lease_rollback(lua_State *L)
{
    return end_transaction(L, STR("rollback"), push_rolled_back);
}

/* lease:mark(what, depth, timeout) -> outcome: true */
static int lease_mark(lua_State *L)
{
    static const char *const MARKS[] = { "set", "release", "undo", NULL };
    static const char *const TEXTS[] = { "savepoint s%d", "release savepoint s%d",
                                         "rollback to savepoint s%d" };
    struct lpg_lease        *lease   = lpg_check_lease(L, 1);
    int                      mark    = luaL_checkoption(L, 2, NULL, MARKS);
    int                      depth   = (int)luaL_checkinteger(L, 3);
    char                     sql[64];
    struct lpg_query        *query;

    if (lpg_lease_is_over(lease))
        return lpg_refuse(L, ENDED);
    query = lpg_query_new(L, PG_RUN, true);
    snprintf(sql, sizeof(sql), TEXTS[mark], depth);
    buf_add_str(&query->call.sql, str_of(sql));
    return start(L, lease, query, 4, push_true);
}

static int run_text(lua_State *L, enum pg_verb verb, task_push_fn push)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    size_t            len;
    const char       *sql = luaL_checklstring(L, 2, &len);
    struct lpg_query *query;

    if (lpg_lease_is_over(lease))
        return lpg_refuse(L, ENDED);
    query = lpg_query_new(L, verb, true);
    buf_add(&query->call.sql, sql, len);
    return start(L, lease, query, 3, push);
}

/* lease:script(sql, timeout) -> outcome: true */
static int lease_script(lua_State *L)
{
    return run_text(L, PG_SCRIPT, push_true);
}

/* lease:command(sql, timeout) -> outcome: true */
static int lease_command(lua_State *L)
{
    return run_text(L, PG_RUN, push_true);
}

/* --- waiting for the connection itself ----------------------------------------------------------- */

static void disarm(void *op)
{
    struct lpg_lease **waits = op;

    (*waits)->waiter = NULL;
}

/* The lease at 1 lives as long as the call. */
static int wait_for(lua_State *L, struct lpg_lease *lease, task_push_fn push)
{
    struct task       *task  = task_current(L);
    struct lpg_lease **waits = task_op(task);

    if (lease->waiter)
        return luaL_error(L, "another task waits for this connection already");
    *waits        = lease;
    lease->waiter = task;
    return task_wait(L, waits, disarm, push);
}

static int push_lost(lua_State *L, const struct lpg_lease *lease)
{
    if (!lease->lease)
        return lerror_nil(L, "closed", "the connection was given back");
    return lrows_push_fault(L, &lease->lease->fault);
}

/* --- NOTIFY ---------------------------------------------------------------------------------------- */

/* lease:listen() -> true */
static int lease_listen(lua_State *L)
{
    lpg_check_lease(L, 1)->listens = true;
    lua_pushboolean(L, 1);
    return 1;
}

static int push_note(lua_State *L, void *op)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    struct note      *note;

    if (!list_is_empty(&lease->notes)) {
        note = container_of(lease->notes.next, struct note, link);
        lua_pushlstring(L, note->text, note->len);
        list_remove(&note->link);
        lease->note_count--;
        free(note);
        return 1;
    }
    if (lease->overflown)
        return lerror_nil(L, "busy", "more than %d notifications waited to be taken", NOTES_MAX);
    return push_lost(L, lease);
}

/* lease:note() -> text | nil, err */
static int lease_note(lua_State *L)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (!lease->lease || !lease->lease->seat || lease->overflown || !list_is_empty(&lease->notes))
        return push_note(L, NULL);
    return wait_for(L, lease, push_note);
}

/* --- COPY -------------------------------------------------------------------------------------------- */

/* lease:copy(sql, timeout) -> outcome: true */
static int lease_copy(lua_State *L)
{
    return run_text(L, PG_COPY, push_true);
}

static int push_written(lua_State *L, void *op)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);

    if (!lease->lease || !lease->lease->seat)
        return push_lost(L, lease);
    lua_pushboolean(L, 1);
    return 1;
}

/* lease:copy_write(text) -> boolean | nil, err */
static int lease_copy_write(lua_State *L)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    struct str        text;

    text = lstr_check(L, 2);
    luaL_argcheck(L, lease->lease, 1, ENDED);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    switch (pg_copy_put(lease->lease, text)) {
    case PG_FLOW_WAIT: return wait_for(L, lease, push_written);
    case PG_FLOW_BROKEN: return push_lost(L, lease);
    case PG_FLOW_DONE: lua_pushboolean(L, 1); return 1;
    case PG_FLOW_END: lua_pushboolean(L, 0); return 1;
    }
    return 0;
}

static int push_again(lua_State *L, void *op)
{
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushboolean(L, 1);
    return 3;
}

/* Pushes what lies in BYTES, which go whatever happens. */
static int push_bytes(lua_State *L)
{
    struct buf *bytes = lua_touserdata(L, 1);

    lua_pushlstring(L, bytes->at, bytes->len);
    return 1;
}

static int push_piece(lua_State *L, struct buf *bytes)
{
    int failed;

    lua_pushcfunction(L, push_bytes);
    lua_pushlightuserdata(L, bytes);
    failed = lua_pcall(L, 1, 1, 0);
    buf_fini(bytes);
    return failed ? lua_error(L) : 1;
}

/* lease:copy_read() -> text | nil | nil, err | nil, nil, true */
static int lease_copy_read(lua_State *L)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    struct buf        bytes;
    enum pg_flow      flow;

    luaL_argcheck(L, lease->lease, 1, ENDED);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    buf_init(&bytes, PG_SQL_BYTES_MAX + COPY_PIECE_BYTES);
    flow = pg_copy_get(lease->lease, &bytes, COPY_PIECE_BYTES);
    if (flow == PG_FLOW_DONE && !bytes.failed)
        return push_piece(L, &bytes);
    buf_fini(&bytes);
    switch (flow) {
    case PG_FLOW_WAIT: return wait_for(L, lease, push_again);
    case PG_FLOW_BROKEN: return push_lost(L, lease);
    case PG_FLOW_DONE:
        return lerror_nil(L, "too_large", "a row of this COPY has more than %d MiB",
                          PG_SQL_BYTES_MAX / (1024 * 1024));
    default: return 0;
    }
}

/* lease:copy_end([error]) -> outcome: integer */
static int lease_copy_end(lua_State *L)
{
    struct lpg_lease *lease = lpg_check_lease(L, 1);
    const char       *error = luaL_optstring(L, 2, NULL);
    struct lpg_query *query;

    if (lpg_lease_is_over(lease))
        return lpg_refuse(L, ENDED);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    query = lpg_query_new(L, PG_COPY, true);
    if (pg_copy_end(lease->lease, &query->call, error) != 0) {
        int count = lrows_push_fault(L, &query->call.fault);

        lpg_query_drop(query);
        return count;
    }
    return lpg_query_wait(L, query, lpg_query_push_changed);
}

static const luaL_Reg METHODS[] = {
    { "begin", lease_begin },
    { "close", lease_close },
    { "command", lease_command },
    { "commit", lease_commit },
    { "copy", lease_copy },
    { "copy_end", lease_copy_end },
    { "copy_read", lease_copy_read },
    { "copy_write", lease_copy_write },
    { "is_open", lease_is_open },
    { "listen", lease_listen },
    { "mark", lease_mark },
    { "note", lease_note },
    { "rollback", lease_rollback },
    { "script", lease_script },
    { "__gc", lease_gc },
    { NULL, NULL },
};

void lpg_lease_class(lua_State *L)
{
    lclass_add(L, LPG_LEASE_METATABLE, METHODS);
}
