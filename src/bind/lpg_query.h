/* bind/lpg_query.h - what the files of PostgreSQL's binding share: one call of Lua's, databases,
 * leases. bind/lpg.h says what it is for. */
#ifndef BIND_LPG_QUERY_H
#define BIND_LPG_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "bind/lhalf.h"
#include "data/pg_call.h"
#include "vm/task.h"
#include "vm/vm_state.h"

struct loop;
struct pg_lease;
struct pg_pool;

#define LPG_DB_METATABLE    "srv.pg.Db"
#define LPG_LEASE_METATABLE "srv.pg.Lease"

struct lpg_db {
    struct handle   handle;
    struct pg_pool *pool; /* NULL: closed, or the VM goes */
};

/* A connection of a task's own. */
struct lpg_lease {
    struct held      held;
    struct pg_lease *lease;  /* NULL: over, or not begun */
    struct task     *waiter; /* for a notification, or a COPY that flows */
    struct list      notes;  /* that have come */
    unsigned         note_count;
    bool             overflown; /* nobody took them in time */
    bool             listens;
    bool             ending; /* commit or rollback is on its way */
};

/* On the heap, until its end. */
struct lpg_query {
    struct lhalf   half; /* until it is started or dropped */
    struct pg_call call;
    struct task   *task;
    bool           finished;
};

struct lpg_db    *lpg_check_db(lua_State *L, int index);
struct lpg_lease *lpg_check_lease(lua_State *L, int index);
/* No statement may be sent in it: behind a commit it would stand for itself. */
bool lpg_lease_is_over(const struct lpg_lease *lease);

/* Pushes `refused` and MESSAGE (nothing, if it is empty); returns 2. */
int lpg_refuse(lua_State *L, const char *message);

/* Milliseconds at INDEX; 0 is none. */
bool lpg_has_limit(lua_State *L, int index);

/* Raises on lack of memory. Until lpg_query_start() or lpg_query_drop() the VM keeps it. */
struct lpg_query *lpg_query_new(lua_State *L, enum pg_verb verb, bool own);
void              lpg_query_drop(struct lpg_query *query);
/* `return lpg_query_start(...)`: the end of a lua_CFunction. PUSH gets the query, and frees it. */
int lpg_query_start(lua_State *L, struct lpg_query *query, struct pg_pool *pool, task_push_fn push);
/* The same for one that was started otherwise. */
int  lpg_query_wait(lua_State *L, struct lpg_query *query, task_push_fn push);
void lpg_query_free(struct lpg_query *query);
/* nil, err of a call that failed; frees it. */
int lpg_query_push_fault(lua_State *L, struct lpg_query *query);
/* A task_push_fn: the number of rows changed, or the fault. */
int lpg_query_push_changed(lua_State *L, void *op);

#endif
