#include "bind/lpg.h"

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lpg_lease.h"
#include "bind/lpg_query.h"
#include "bind/lpg_rows.h"
#include "bind/lrows.h"
#include "data/pg.h"
#include "data/pg_guard.h"
#include "vm/vm.h"

/* --- databases --------------------------------------------------------------------------------- */

static void close_db(struct lpg_db *db)
{
    struct pg_pool *pool = db->pool;

    db->pool = NULL;
    if (pool)
        pg_pool_close(pool);
}

static void cut_db(struct handle *handle)
{
    close_db(container_of(handle, struct lpg_db, handle));
}

/* open(url, connections, waiting, timeout) -> db | nil, err */
static int open_db(lua_State *L)
{
    struct env       *env     = env_of(L);
    struct pg_options options = { .url         = luaL_checkstring(L, 1),
                                  .connections = (unsigned)luaL_checkinteger(L, 2),
                                  .waiting     = (unsigned)luaL_checkinteger(L, 3),
                                  .timeout_ms  = (uint64_t)luaL_checknumber(L, 4) };
    struct lpg_db    *db;
    struct err        err;

    if (!env->pg)
        return lerror_nil(L, "unavailable", "no databases are lent to this VM");
    db             = lclass_new(L, LPG_DB_METATABLE, sizeof(*db));
    db->handle.cut = cut_db;
    list_init(&db->handle.link);
    if (pg_pool_open(&db->pool, env->pg, &options, &err) != 0)
        return lerror_nil(L, err.code == ERR_INVALID ? "invalid" : "unavailable", "%s", err.text);
    handle_link(&db->handle, vm_of(L));
    return 1;
}

/* db:close() */
static int db_close(lua_State *L)
{
    struct lpg_db *db = lpg_check_db(L, 1);

    handle_unlink(&db->handle);
    close_db(db);
    return 0;
}

/* --- statements -------------------------------------------------------------------------------- */

/* Statement and values stand from FIRST on. NULL, or why not. */
static const char *fill(lua_State *L, struct lpg_query *query, int first)
{
    struct buf *sql   = &query->call.sql;
    const char *wrong = lrows_read_statement(L, first, sql, &query->call.params);

    if (!wrong && str_find(buf_str(sql), '\0') < sql->len)
        return "the statement has a zero byte in it";
    return wrong;
}

/* (db, lease, timeout, sql, ...) from 1 on. */
static int run(lua_State *L, task_push_fn push)
{
    struct lpg_db    *db    = lpg_check_db(L, 1);
    struct lpg_lease *lease = lua_isnoneornil(L, 2) ? NULL : lpg_check_lease(L, 2);
    bool              limit = lpg_has_limit(L, 3);
    struct lpg_query *query;
    const char       *wrong;

    if (!db->pool)
        return lpg_refuse(L, "the database handle is closed");
    if (lease && lpg_lease_is_over(lease))
        return lpg_refuse(L, "the transaction has ended");
    query                = lpg_query_new(L, PG_RUN, false);
    query->call.lease    = lease ? lease->lease : NULL;
    query->call.no_limit = !limit;
    wrong                = fill(L, query, 4);
    if (wrong) {
        lpg_query_drop(query);
        return lpg_refuse(L, wrong);
    }
    return lpg_query_start(L, query, db->pool, push);
}

static int push_rows(lua_State *L, void *op)
{
    struct lpg_query *query = op;

    if (fault_is_set(&query->call.fault))
        return lpg_query_push_fault(L, query);
    lpg_rows_push(L, &query->call.rows);
    lpg_query_free(query);
    return 1;
}

/* The first row, by PUSH, or no_row. */
static int push_first(lua_State *L, struct lpg_query *query,
                      void (*push)(lua_State *L, const struct pg_rows *rows))
{
    int count = 1;

    if (fault_is_set(&query->call.fault))
        return lpg_query_push_fault(L, query);
    if (pg_rows_count(&query->call.rows) == 0)
        count = lerror_nil(L, "no_row", "no such row");
    else
        push(L, &query->call.rows);
    lpg_query_free(query);
    return count;
}

static int push_one(lua_State *L, void *op)
{
    return push_first(L, op, lpg_rows_push_first);
}

static int push_value(lua_State *L, void *op)
{
    return push_first(L, op, lpg_rows_push_value);
}

/* db:query(lease, timeout, sql, ...) -> outcome: rows */
static int db_query(lua_State *L)
{
    return run(L, push_rows);
}

/* db:one(lease, timeout, sql, ...) -> outcome: row */
static int db_one(lua_State *L)
{
    return run(L, push_one);
}

/* db:value(lease, timeout, sql, ...) -> outcome: any */
static int db_value(lua_State *L)
{
    return run(L, push_value);
}

/* db:exec(lease, timeout, sql, ...) -> outcome: integer */
static int db_exec(lua_State *L)
{
    return run(L, lpg_query_push_changed);
}

/* --- the module -------------------------------------------------------------------------------- */

/* reads(sql) -> boolean */
static int reads(lua_State *L)
{
    lua_pushboolean(L, pg_guard_reads(str_of(luaL_checkstring(L, 1))));
    return 1;
}

/* blob(s) -> s as bytes */
static int blob(lua_State *L)
{
    luaL_checkstring(L, 1);
    lrows_push_blob(L, 1);
    return 1;
}

/* stats() -> table */
static int stats(lua_State *L)
{
    struct env     *env = env_of(L);
    struct pg_stats now = { .open = 0 };

    if (env->pg)
        pg_worker_stats(env->pg, &now);
    lua_createtable(L, 0, 11);
    lfield_set_number(L, "open", now.open);
    lfield_set_number(L, "idle", now.idle);
    lfield_set_number(L, "leased", now.leased);
    lfield_set_number(L, "connecting", now.connecting);
    lfield_set_number(L, "waiting", now.waiting);
    lfield_set_number(L, "in_flight", now.in_flight);
    lfield_set_number(L, "statements", (lua_Number)now.statements);
    lfield_set_number(L, "orphaned", (lua_Number)now.orphaned);
    lfield_set_number(L, "cancelled", (lua_Number)now.cancelled);
    lfield_set_number(L, "connects", (lua_Number)now.connects);
    lfield_set_number(L, "connects_failed", (lua_Number)now.connects_failed);
    return 1;
}

static const luaL_Reg DB_METHODS[] = {
    { "query", db_query }, { "one", db_one },    { "value", db_value }, { "exec", db_exec },
    { "close", db_close }, { "__gc", db_close }, { NULL, NULL },
};

static const luaL_Reg FUNCTIONS[] = {
    { "open", open_db }, { "lease", lpg_lease_new }, { "reads", reads },
    { "blob", blob },    { "stats", stats },         { NULL, NULL },
};

int lpg_open(lua_State *L)
{
    lhalf_prepare(L);
    lclass_add(L, LPG_DB_METATABLE, DB_METHODS);
    lpg_lease_class(L);
    lua_createtable(L, 0, 8);
    luaL_register(L, NULL, FUNCTIONS);
    lpg_refuse(L, "");
    lua_pop(L, 1);
    lua_setfield(L, -2, "refused");
    return 1;
}
