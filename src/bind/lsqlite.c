/* A call of Lua's is a struct lquery on the heap, since it may outlive the task that asked: then
 * it is cancelled, and frees itself when its statement has come to an end. A lease and an open
 * cursor are held by their task: however that ends, the transaction is rolled back.
 *
 * Objects that a result goes into are made before the wait: the push functions allocate nothing
 * that would have to be given back. */
#include "bind/lsqlite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lhalf.h"
#include "bind/lrows.h"
#include "bind/lwaits.h"
#include "data/sqlite.h"
#include "ev/loop.h"
#include "vm/task.h"
#include "vm/vm.h"

#define DB_METATABLE     "srv.sqlite.Db"
#define LEASE_METATABLE  "srv.sqlite.Lease"
#define CURSOR_METATABLE "srv.sqlite.Cursor"

/* Its address is the registry's key of struct lsqlite, and the light userdata `refused`. */
static const char KEY = 0;

/* One for each VM. */
struct lsqlite {
    struct list leases; /* open ones of this VM */
};

struct ldb {
    struct handle     handle;
    struct sqlite_db *db; /* NULL: closed, or the VM goes */
    struct loop      *loop;
};

struct llease {
    struct held          held;
    struct list          link;  /* in lsqlite->leases */
    struct sqlite_lease *lease; /* NULL: over, or not begun */
    struct sqlite_db    *db;
    struct loop         *loop;
    struct task         *task; /* that holds it */
};

struct lcursor {
    struct held           held;   /* for a lease of its own */
    struct sqlite_cursor *cursor; /* NULL: no more rows */
    struct sqlite_lease  *own;    /* NULL: the transaction's */
    struct llease        *tx;     /* kept alive by who loops; NULL: a lease of its own */
    struct sqlite_lease  *tx_lease;
    struct sqlite_db     *db;
    struct loop          *loop;
};

/* --- the VM's own ------------------------------------------------------------------------------ */

static struct lsqlite *lsqlite_of(lua_State *L)
{
    struct lsqlite *own;

    lua_pushlightuserdata(L, (void *)&KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    own = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return own;
}

/* The caller of the Lua function above us is to blame; that function knows its level. */
static int refuse(lua_State *L, const char *message)
{
    lua_pushlightuserdata(L, (void *)&KEY);
    if (*message)
        lua_pushstring(L, message);
    else
        lua_pushnil(L);
    return 2;
}

static uint64_t check_timeout(lua_State *L, int index)
{
    lua_Number ms = luaL_checknumber(L, index);

    luaL_argcheck(L, ms >= 0 && ms < 1e15, index, "milliseconds");
    return (uint64_t)ms;
}

/* --- queries: one call of Lua's ---------------------------------------------------------------- */

struct lquery {
    struct lhalf       half; /* until start() */
    struct sqlite_call call;
    struct task       *task; /* that waits; NULL: nobody */
    bool               finished;
};

static void free_query(struct sqlite_call *call)
{
    sqlite_call_fini(call);
    free(container_of(call, struct lquery, call));
}

static void on_done(struct sqlite_call *call)
{
    struct lquery *query = container_of(call, struct lquery, call);

    query->finished = true;
    task_wake(query->task);
}

static void drop_half(struct lhalf *half)
{
    free_query(&container_of(half, struct lquery, half)->call);
}

/* Raises on lack of memory. Until start() or give_up() the VM keeps it. */
static struct lquery *new_query(lua_State *L, enum sqlite_verb verb)
{
    struct lquery *query = malloc(sizeof(*query));

    if (!query)
        luaL_error(L, "not enough memory");
    *query = (struct lquery){ .half = { .drop = drop_half } };
    sqlite_call_init(&query->call, verb);
    query->call.done = on_done;
    query->call.drop = free_query;
    lhalf_keep(L, &query->half);
    return query;
}

static void disarm(void *op)
{
    struct lquery *query = op;

    query->task = NULL;
    if (!query->finished) {
        sqlite_cancel(&query->call);
        return;
    }
    if (query->call.leased)
        sqlite_lease_close(query->call.lease);
    free_query(&query->call);
}

static bool has_writer(const struct llease *llease, const struct sqlite_db *db)
{
    return llease->db == db && sqlite_lease_blocks(llease->lease);
}

/* The transaction may have begun to wait for this task when the statement stood in the queue already. */
static void name_who_has_writer(lua_State *L, struct lquery *query)
{
    struct sqlite_call *call = &query->call;

    list_each(node, &lsqlite_of(L)->leases)
    {
        struct llease *llease = container_of(node, struct llease, link);

        if (has_writer(llease, call->db) && lwaits_is_above(llease->task, query->task))
            fault_set(&call->fault, "timeout",
                      "no connection became free in time: a transaction has it that was begun by "
                      "this task's parent; if it waits for this task, give the task its handle");
    }
}

/* nil, err, if the call failed; the query is freed then. */
static int push_fault(lua_State *L, struct lquery *query)
{
    int count;

    if (query->task && query->call.writes && strcmp(query->call.fault.code, "timeout") == 0)
        name_who_has_writer(L, query);
    count = lrows_push_fault(L, &query->call.fault);

    free_query(&query->call);
    return count;
}

/* `return start(...)`: the end of a lua_CFunction. */
static int start(lua_State *L, struct lquery *query, struct sqlite_db *db, struct loop *loop,
                 task_push_fn push)
{
    struct task *task = task_current(L);

    lhalf_take(&query->half);
    query->task = task;
    if (task_is_cancelled(task)) {
        free_query(&query->call);
        return task_stop(L);
    }
    if (sqlite_start(&query->call, db, loop) != 0)
        return push_fault(L, query);
    return task_wait(L, query, disarm, push);
}

static int give_up(struct lquery *query, lua_State *L, const char *message)
{
    lhalf_take(&query->half);
    free_query(&query->call);
    return refuse(L, message);
}

static int push_true(lua_State *L, void *op)
{
    struct lquery *query = op;

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    free_query(&query->call);
    lua_pushboolean(L, 1);
    return 1;
}

/* --- databases --------------------------------------------------------------------------------- */

static void close_db(struct ldb *ldb)
{
    struct sqlite_db *db = ldb->db;

    ldb->db = NULL;
    if (db)
        sqlite_db_close(db, loop_inbox(ldb->loop));
}

static void cut_db(struct handle *handle)
{
    close_db(container_of(handle, struct ldb, handle));
}

/* "news.db" lies in the app's folder. */
static int resolve(char *to, size_t room, const char *path, const char *app_root)
{
    bool as_it_is = path[0] == '/' || path[0] == ':' || !app_root;
    int  len =
        as_it_is ? snprintf(to, room, "%s", path) : snprintf(to, room, "%s/%s", app_root, path);

    return len > 0 && (size_t)len < room ? 0 : -1;
}

/* open(path, connections, waiting) -> db | nil, err */
static int open_db(lua_State *L)
{
    struct env           *env = env_of(L);
    char                  path[PATH_MAX];
    struct sqlite_options options = { path, (unsigned)luaL_checkinteger(L, 2),
                                      (unsigned)luaL_checkinteger(L, 3) };
    struct ldb           *ldb;
    struct err            err;

    if (resolve(path, sizeof(path), luaL_checkstring(L, 1), env->app_root) != 0)
        return lerror_nil(L, "unavailable", "the path of the database is too long");
    if (!env->sqlite)
        return lerror_nil(L, "unavailable", "no databases are lent to this VM");
    ldb             = lclass_new(L, DB_METATABLE, sizeof(*ldb));
    ldb->handle.cut = cut_db;
    ldb->loop       = env->loop;
    list_init(&ldb->handle.link);
    if (sqlite_db_open(&ldb->db, env->sqlite, &options, &err) != 0)
        return lerror_nil(L, "unavailable", "%s", err.text);
    handle_link(&ldb->handle, vm_of(L));
    return 1;
}

static struct ldb *check_db(lua_State *L, int index)
{
    return luaL_checkudata(L, index, DB_METATABLE);
}

/* db:close() */
static int db_close(lua_State *L)
{
    struct ldb *ldb = check_db(L, 1);

    handle_unlink(&ldb->handle);
    close_db(ldb);
    return 0;
}

/* --- leases -------------------------------------------------------------------------------------- */

static void end_lease(struct llease *llease)
{
    struct sqlite_lease *lease = llease->lease;

    llease->lease = NULL;
    list_remove(&llease->link);
    task_unhold(&llease->held);
    if (lease)
        sqlite_lease_close(lease);
}

static void release_lease(struct held *held)
{
    end_lease(container_of(held, struct llease, held));
}

/* lease() -> lease */
static int new_lease(lua_State *L)
{
    struct llease *llease = lclass_new(L, LEASE_METATABLE, sizeof(*llease));

    llease->held.release = release_lease;
    list_init(&llease->held.link);
    list_init(&llease->link);
    return 1;
}

static struct llease *check_lease(lua_State *L, int index)
{
    return luaL_checkudata(L, index, LEASE_METATABLE);
}

static int lease_gc(lua_State *L)
{
    end_lease(check_lease(L, 1));
    return 0;
}

/* lease:is_open() -> boolean */
static int lease_is_open(lua_State *L)
{
    lua_pushboolean(L, check_lease(L, 1)->lease != NULL);
    return 1;
}

static int push_begun(lua_State *L, void *op)
{
    struct lquery *query  = op;
    struct llease *llease = check_lease(L, 1);

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    llease->lease = query->call.lease;
    llease->task  = query->task;
    list_append(&lsqlite_of(L)->leases, &llease->link);
    task_hold(query->task, &llease->held);
    return push_true(L, op);
}

static const char WAITS_FOR_ITSELF[] = "this would wait for the transaction it stands in: inside "
                                       "db:tx use the handle that the function was given";
static const char WAITS_FOR_PARENT[] =
    "this would wait for a transaction that waits for this task: in db:tx, and in the tasks that it "
    "waits for, use the handle that the function was given";

/* What is wrong with waiting for the writer now, if anything is. */
static const char *waits_in_vain(lua_State *L, const struct sqlite_db *db,
                                 const struct sqlite_call *call)
{
    struct task *task = task_current(L);

    if (!sqlite_is_for_writer(db, call))
        return NULL;
    list_each(node, &lsqlite_of(L)->leases)
    {
        struct llease *llease = container_of(node, struct llease, link);

        if (has_writer(llease, db) && lwaits_for(llease->task, task))
            return llease->task == task ? WAITS_FOR_ITSELF : WAITS_FOR_PARENT;
    }
    return NULL;
}

static const char CLOSED[] = "the database handle is closed";
static const char ENDED[]  = "the transaction has ended";

/* lease:begin(db, kind, timeout) -> outcome: true */
static int lease_begin(lua_State *L)
{
    static const char *const KINDS[] = { "write", "read", "migrate", NULL };
    struct llease           *llease  = check_lease(L, 1);
    struct ldb              *ldb     = check_db(L, 2);
    int                      kind    = luaL_checkoption(L, 3, NULL, KINDS);
    uint64_t                 timeout = check_timeout(L, 4);
    struct lquery           *query;
    const char              *wrong;

    luaL_argcheck(L, !llease->lease, 1, "begun already");
    if (!ldb->db)
        return refuse(L, CLOSED);
    query                  = new_query(L, CALL_BEGIN);
    query->call.tx         = (enum sqlite_tx)kind; /* in this order */
    query->call.timeout_ms = timeout;
    wrong                  = waits_in_vain(L, ldb->db, &query->call);
    if (wrong)
        return give_up(query, L, wrong);
    llease->db   = ldb->db;
    llease->loop = ldb->loop;
    return start(L, query, ldb->db, ldb->loop, push_begun);
}

/* The transaction is over, and the connection with whoever is next. */
static int push_ended(lua_State *L, void *op)
{
    end_lease(check_lease(L, 1));
    return push_true(L, op);
}

static int start_in_lease(lua_State *L, enum sqlite_verb verb, int timeout_index, task_push_fn push)
{
    struct llease *llease  = check_lease(L, 1);
    uint64_t       timeout = check_timeout(L, timeout_index);
    struct lquery *query;

    if (!llease->lease)
        return refuse(L, ENDED);
    query                  = new_query(L, verb);
    query->call.lease      = llease->lease;
    query->call.timeout_ms = timeout;
    if (verb == CALL_SCRIPT) {
        size_t      len;
        const char *text = luaL_checklstring(L, 2, &len);

        buf_add(&query->call.sql, text, len);
    }
    if (verb == CALL_MARK) {
        static const char *const MARKS[] = { "set", "release", "undo", NULL };

        query->call.mark  = (enum sqlite_mark)luaL_checkoption(L, 2, NULL, MARKS);
        query->call.depth = (unsigned)luaL_checkinteger(L, 3);
    }
    return start(L, query, llease->db, llease->loop, push);
}

/* lease:commit(timeout) -> outcome: true */
static int lease_commit(lua_State *L)
{
    return start_in_lease(L, CALL_COMMIT, 2, push_ended);
}

/* lease:rollback(timeout) -> outcome: true */
static int lease_rollback(lua_State *L)
{
    return start_in_lease(L, CALL_ROLLBACK, 2, push_ended);
}

/* lease:script(sql, timeout) -> outcome: true */
static int lease_script(lua_State *L)
{
    return start_in_lease(L, CALL_SCRIPT, 3, push_true);
}

/* lease:mark(what, depth, timeout) -> outcome: true */
static int lease_mark(lua_State *L)
{
    return start_in_lease(L, CALL_MARK, 4, push_true);
}

/* --- statements ------------------------------------------------------------------------------------ */

/* (db, lease, timeout, sql, ...) at INDEX. NULL: *COUNT values were pushed instead. */
static struct lquery *make_query(lua_State *L, int index, enum sqlite_verb verb, int *count)
{
    struct ldb    *ldb     = check_db(L, index);
    struct llease *llease  = lua_isnoneornil(L, index + 1) ? NULL : check_lease(L, index + 1);
    uint64_t       timeout = check_timeout(L, index + 2);
    struct lquery *query;
    const char    *wrong;

    *count = 2;
    if (!ldb->db || (llease && !llease->lease)) {
        refuse(L, ldb->db ? ENDED : CLOSED);
        return NULL;
    }
    query                  = new_query(L, verb);
    query->call.lease      = llease ? llease->lease : NULL;
    query->call.timeout_ms = timeout;
    wrong = lrows_read_statement(L, index + 3, &query->call.sql, &query->call.params);
    if (!wrong && !llease)
        wrong = waits_in_vain(L, ldb->db, &query->call);
    if (!wrong)
        return query;
    give_up(query, L, wrong);
    return NULL;
}

static int push_query(lua_State *L, void *op)
{
    struct lquery *query = op;

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    lrows_push(L, &query->call.rows);
    free_query(&query->call);
    return 1;
}

static int push_no_row(lua_State *L, struct lquery *query)
{
    lerror_nil(L, "no_row", "no such row");
    free_query(&query->call);
    return 2;
}

static int push_one(lua_State *L, void *op)
{
    struct lquery *query = op;

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    if (query->call.rows.row_count == 0)
        return push_no_row(L, query);
    lrows_push_first(L, &query->call.rows);
    free_query(&query->call);
    return 1;
}

static int push_value(lua_State *L, void *op)
{
    struct lquery *query = op;

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    if (query->call.rows.row_count == 0)
        return push_no_row(L, query);
    lrows_push_value(L, &query->call.rows);
    free_query(&query->call);
    return 1;
}

static int push_exec(lua_State *L, void *op)
{
    struct lquery *query = op;
    lua_Number     changed;

    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    changed = (lua_Number)query->call.rows.changed;
    free_query(&query->call);
    lua_pushnumber(L, changed);
    return 1;
}

static int run(lua_State *L, enum rows_keep keep, task_push_fn push)
{
    int            count;
    struct lquery *query = make_query(L, 1, CALL_RUN, &count);
    struct ldb    *ldb   = check_db(L, 1);

    if (!query)
        return count;
    query->call.keep = keep;
    return start(L, query, ldb->db, ldb->loop, push);
}

/* db:query(lease, timeout, sql, ...) -> outcome: rows */
static int db_query(lua_State *L)
{
    return run(L, ROWS_ALL, push_query);
}

/* db:one(lease, timeout, sql, ...) -> outcome: row */
static int db_one(lua_State *L)
{
    return run(L, ROWS_FIRST, push_one);
}

/* db:value(lease, timeout, sql, ...) -> outcome: any */
static int db_value(lua_State *L)
{
    return run(L, ROWS_FIRST, push_value);
}

/* db:exec(lease, timeout, sql, ...) -> outcome: integer */
static int db_exec(lua_State *L)
{
    return run(L, ROWS_NONE, push_exec);
}

/* --- cursors ----------------------------------------------------------------------------------------- */

static void end_cursor(struct lcursor *cursor)
{
    struct sqlite_lease *own = cursor->own;

    cursor->cursor = NULL;
    cursor->own    = NULL;
    task_unhold(&cursor->held);
    if (own)
        sqlite_lease_close(own);
}

static void release_cursor(struct held *held)
{
    end_cursor(container_of(held, struct lcursor, held));
}

/* cursor() -> cursor */
static int new_cursor(lua_State *L)
{
    struct lcursor *cursor = lclass_new(L, CURSOR_METATABLE, sizeof(*cursor));

    cursor->held.release = release_cursor;
    list_init(&cursor->held.link);
    return 1;
}

static struct lcursor *check_cursor(lua_State *L, int index)
{
    return luaL_checkudata(L, index, CURSOR_METATABLE);
}

/* cursor:close() */
static int cursor_close(lua_State *L)
{
    end_cursor(check_cursor(L, 1));
    return 0;
}

static int push_batch(lua_State *L, struct lquery *query)
{
    lrows_push(L, &query->call.rows);
    lua_pushboolean(L, query->call.rows.done);
    free_query(&query->call);
    return 2;
}

/* What may raise comes first: disarm() closes the lease then. */
static int push_opened(lua_State *L, void *op)
{
    struct lquery      *query  = op;
    struct lcursor     *cursor = check_cursor(L, 1);
    struct sqlite_call *call   = &query->call;

    if (fault_is_set(&call->fault))
        return push_fault(L, query);
    lrows_push(L, &call->rows);
    lua_pushboolean(L, call->rows.done);
    cursor->cursor = call->cursor;
    if (call->leased) {
        cursor->own = call->lease;
        task_hold(query->task, &cursor->held);
    }
    free_query(call);
    return 2;
}

/* cursor:open(db, lease, timeout, sql, ...) -> outcome: rows, done */
static int cursor_open(lua_State *L)
{
    struct lcursor *cursor = check_cursor(L, 1);
    struct ldb     *ldb    = check_db(L, 2);
    int             count;
    struct lquery  *query;

    luaL_argcheck(L, !cursor->cursor, 1, "open already");
    query = make_query(L, 2, CALL_CURSOR, &count);
    if (!query)
        return count;
    cursor->db       = ldb->db;
    cursor->loop     = ldb->loop;
    cursor->tx       = query->call.lease ? check_lease(L, 3) : NULL;
    cursor->tx_lease = query->call.lease;
    return start(L, query, ldb->db, ldb->loop, push_opened);
}

static int push_fetched(lua_State *L, void *op)
{
    struct lquery  *query  = op;
    struct lcursor *cursor = check_cursor(L, 1);

    if (fault_is_set(&query->call.fault) || query->call.rows.done)
        end_cursor(cursor);
    if (fault_is_set(&query->call.fault))
        return push_fault(L, query);
    return push_batch(L, query);
}

/* cursor:fetch(timeout) -> outcome: rows, done */
static int cursor_fetch(lua_State *L)
{
    struct lcursor      *cursor  = check_cursor(L, 1);
    uint64_t             timeout = check_timeout(L, 2);
    struct sqlite_lease *lease   = cursor->own;
    struct lquery       *query;

    if (cursor->tx && cursor->tx->lease == cursor->tx_lease)
        lease = cursor->tx_lease;
    if (!cursor->cursor || !lease)
        return refuse(L, ENDED);
    query                  = new_query(L, CALL_FETCH);
    query->call.lease      = lease;
    query->call.cursor     = cursor->cursor;
    query->call.timeout_ms = timeout;
    return start(L, query, cursor->db, cursor->loop, push_fetched);
}

/* --- the module ------------------------------------------------------------------------------------------ */

/* blob(s) -> s as bytes */
static int blob(lua_State *L)
{
    luaL_checkstring(L, 1);
    lrows_push_blob(L, 1);
    return 1;
}

static const luaL_Reg DB_METHODS[] = {
    { "query", db_query }, { "one", db_one },    { "value", db_value }, { "exec", db_exec },
    { "close", db_close }, { "__gc", db_close }, { NULL, NULL },
};

static const luaL_Reg LEASE_METHODS[] = {
    { "begin", lease_begin },       { "commit", lease_commit },
    { "rollback", lease_rollback }, { "script", lease_script },
    { "mark", lease_mark },         { "is_open", lease_is_open },
    { "__gc", lease_gc },           { NULL, NULL },
};

static const luaL_Reg CURSOR_METHODS[] = {
    { "open", cursor_open },
    { "fetch", cursor_fetch },
    { "close", cursor_close },
    { "__gc", cursor_close },
    { NULL, NULL },
};

static const luaL_Reg FUNCTIONS[] = {
    { "open", open_db }, { "lease", new_lease }, { "cursor", new_cursor },
    { "blob", blob },    { NULL, NULL },
};

static void make_own(lua_State *L)
{
    struct lsqlite *own;

    lua_pushlightuserdata(L, (void *)&KEY);
    own = lua_newuserdata(L, sizeof(*own));
    list_init(&own->leases);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

int lsqlite_open(lua_State *L)
{
    make_own(L);
    lhalf_prepare(L);
    lclass_add(L, DB_METATABLE, DB_METHODS);
    lclass_add(L, LEASE_METATABLE, LEASE_METHODS);
    lclass_add(L, CURSOR_METATABLE, CURSOR_METHODS);
    lua_createtable(L, 0, 8);
    luaL_register(L, NULL, FUNCTIONS);
    lua_pushlightuserdata(L, (void *)&KEY);
    lua_setfield(L, -2, "refused");
    return 1;
}
