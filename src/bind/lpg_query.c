#include "bind/lpg_query.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "bind/lrows.h"
#include "data/pg.h"

/* Its address is the registry's key of struct own, and the light userdata `refused`. */
static const char KEY = 0;

/* One for each VM. */
struct own {
    struct lpg_query *half_made; /* its maker raised: freed by the next call */
};

static int free_own(lua_State *L)
{
    struct own *own = lua_touserdata(L, 1);

    if (own->half_made)
        lpg_query_free(own->half_made);
    own->half_made = NULL;
    return 0;
}

static struct own *own_of(lua_State *L)
{
    struct own *own;

    lua_pushlightuserdata(L, (void *)&KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    own = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (own)
        return own;
    lua_pushlightuserdata(L, (void *)&KEY);
    own  = lua_newuserdata(L, sizeof(*own));
    *own = (struct own){ .half_made = NULL };
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_own);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return own;
}

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
    lua_pushlightuserdata(L, (void *)&KEY);
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

struct lpg_query *lpg_query_new(lua_State *L, enum pg_verb verb, bool own)
{
    struct own       *vm    = own_of(L);
    struct lpg_query *query = malloc(sizeof(*query));

    if (vm->half_made)
        lpg_query_free(vm->half_made);
    vm->half_made = query;
    if (!query)
        luaL_error(L, "not enough memory");
    query->task     = NULL;
    query->finished = false;
    pg_call_init(&query->call, verb);
    query->call.done = on_done;
    query->call.own  = own;
    return query;
}

void lpg_query_drop(lua_State *L, struct lpg_query *query)
{
    own_of(L)->half_made = NULL;
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
    own_of(L)->half_made = NULL;
    query->task          = task_current(L);
    return task_wait(L, query, disarm, push);
}

int lpg_query_start(lua_State *L, struct lpg_query *query, struct pg_pool *pool, task_push_fn push)
{
    if (task_is_cancelled(task_current(L))) {
        lpg_query_drop(L, query);
        return task_stop(L);
    }
    if (pg_start(&query->call, pool) != 0) {
        own_of(L)->half_made = NULL;
        return lpg_query_push_fault(L, query);
    }
    return lpg_query_wait(L, query, push);
}
