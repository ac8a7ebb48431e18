#include "bind/lpg_query.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "bind/lrows.h"
#include "data/pg.h"

/* Its address is the light userdata `refused`. */
static const char REFUSED = 0;

struct lpg_db *lpg_check_db(lua_State *L, int index)
{
    return luaL_checkudata(L, index, LPG_DB_METATABLE);
}

struct lpg_lease *lpg_check_lease(lua_State *L, int index)
{
    return luaL_checkudata(L, index, LPG_LEASE_METATABLE);
}

bool lpg_lease_is_over(const struct lpg_lease *lease)
{
    return !lease->lease || lease->ending;
}

int lpg_refuse(lua_State *L, const char *message)
{
    lua_pushlightuserdata(L, (void *)&REFUSED);
    if (*message)
        lua_pushstring(L, message);
    else
        lua_pushnil(L);
    return 2;
}

bool lpg_has_limit(lua_State *L, int index)
{
    return luaL_checknumber(L, index) > 0;
}

/* --- queries ----------------------------------------------------------------------------------- */

void lpg_query_free(struct lpg_query *query)
{
    pg_call_fini(&query->call);
    free(query);
}

static void on_done(struct pg_call *call)
{
    struct lpg_query *query = container_of(call, struct lpg_query, call);

    query->finished = true;
    task_wake(query->task);
}

static void drop_half(struct lhalf *half)
{
    lpg_query_free(container_of(half, struct lpg_query, half));
}

struct lpg_query *lpg_query_new(lua_State *L, enum pg_verb verb, bool own)
{
    struct lpg_query *query = malloc(sizeof(*query));

    if (!query)
        luaL_error(L, "not enough memory");
    query->half.drop = drop_half;
    query->task      = NULL;
    query->finished  = false;
    pg_call_init(&query->call, verb);
    query->call.done = on_done;
    query->call.own  = own;
    lhalf_keep(L, &query->half);
    return query;
}

void lpg_query_drop(struct lpg_query *query)
{
    lhalf_take(&query->half);
    lpg_query_free(query);
}

static void disarm(void *op)
{
    struct lpg_query *query = op;

    if (!query->finished)
        pg_cancel(&query->call);
    else if (query->call.verb == PG_BEGIN)
        pg_lease_close(query->call.lease);
    lpg_query_free(query);
}

int lpg_query_push_fault(lua_State *L, struct lpg_query *query)
{
    int count;

    if (query->call.verb == PG_BEGIN)
        pg_lease_close(query->call.lease);
    query->call.lease = NULL;
    count             = lrows_push_fault(L, &query->call.fault);
    lpg_query_free(query);
    return count;
}

int lpg_query_wait(lua_State *L, struct lpg_query *query, task_push_fn push)
{
    lhalf_take(&query->half);
    query->task = task_current(L);
    return task_wait(L, query, disarm, push);
}

int lpg_query_start(lua_State *L, struct lpg_query *query, struct pg_pool *pool, task_push_fn push)
{
    if (task_is_cancelled(task_current(L))) {
        lpg_query_drop(query);
        return task_stop(L);
    }
    if (pg_start(&query->call, pool) != 0) {
        lhalf_take(&query->half);
        return lpg_query_push_fault(L, query);
    }
    return lpg_query_wait(L, query, push);
}

int lpg_query_push_changed(lua_State *L, void *op)
{
    struct lpg_query *query = op;

    if (fault_is_set(&query->call.fault))
        return lpg_query_push_fault(L, query);
    lua_pushnumber(L, (lua_Number)pg_rows_changed(&query->call.rows));
    lpg_query_free(query);
    return 1;
}
