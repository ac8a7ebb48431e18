/* A wait is on the heap, since another thread may be about to send it home when its task goes away:
 * then it is abandoned, and freed on arrival. A lease is a userdata that its task holds. */
#include "bind/ldict_lease.h"

#include <stdbool.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/map.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/ldict_object.h"
#include "bind/lerror.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "bind/lwaits.h"
#include "data/dict_lease.h"
#include "ev/loop.h"
#include "vm/task.h"

#define LEASE_METATABLE "srv.SharedLease"

/* --- waits -------------------------------------------------------------------------------------- */

struct lwait {
    struct dict_waiter waiter;
    struct task       *task;
    struct ldict_own  *own; /* the VM's, which lives as long as its tasks */
    bool               came_home;
};

static void on_change(struct dict_waiter *waiter)
{
    struct lwait *wait = container_of(waiter, struct lwait, waiter);

    wait->came_home = true;
    task_wake(wait->task);
}

static void free_wait(struct dict_waiter *waiter)
{
    free(container_of(waiter, struct lwait, waiter));
}

static void disarm_wait(void *op)
{
    struct lwait *wait = op;

    if (!wait->came_home && !dict_unwait(&wait->waiter))
        return;
    if (wait->waiter.lease)
        dict_lease_end(wait->waiter.lease);
    free(wait);
}

static struct lwait *new_wait(lua_State *L, struct task *task)
{
    struct lwait *wait = malloc(sizeof(*wait));

    if (!wait)
        luaL_error(L, "not enough memory");
    *wait             = (struct lwait){ .task = task, .own = ldict_own(L) };
    wait->waiter.home = loop_inbox(env_of(L)->loop);
    wait->waiter.done = on_change;
    wait->waiter.drop = free_wait;
    return wait;
}

static int push_busy(lua_State *L)
{
    return lerror_nil(L, "busy", "more than %d tasks wait for keys of this shared dictionary",
                      DICT_WAITERS_MAX);
}

/* Arguments are where they were, the dictionary and the key too. */
static int push_changed(lua_State *L, void *op)
{
    struct lwait *wait  = op;
    struct ldict *ldict = lua_touserdata(L, 1);
    struct str    key;
    int           count;

    key   = lstr_at(L, 2);
    count = ldict_push_value(L, wait->own, ldict->dict, key);
    free(wait);
    return count;
}

int ldict_wait(lua_State *L)
{
    static const char WHERE[]    = "shared:wait";
    struct ldict     *ldict      = ldict_check(L);
    struct ldict_own *own        = ldict_own(L);
    struct str        key        = ldict_check_key(L, WHERE);
    uint64_t          timeout_ms = ldict_check_timeout(L, 3, WHERE);
    struct task      *task       = task_current(L);
    bool              has_seen   = lua_gettop(L) >= 4 && !lua_isnil(L, 4);
    bool              looks      = lua_gettop(L) >= 4;
    struct dict_value seen;
    struct lwait     *wait;
    int               rc;

    if (task_is_cancelled(task))
        return task_stop(L);
    if (has_seen)
        seen = ldict_check_value(L, 4, ldict->dict, WHERE, &own->written[0]);
    wait = new_wait(L, task);
    rc   = looks ? dict_wait_unless(ldict->dict, &wait->waiter, key, has_seen ? &seen : NULL,
                                    ldict_now_ms(L))
                 : dict_wait(ldict->dict, &wait->waiter, key, ldict_now_ms(L));
    if (rc == 0)
        return task_wait_for(L, wait, disarm_wait, push_changed, timeout_ms, ltask_push_timeout);
    free(wait);
    return rc == ERR_EXISTS ? ldict_push_value(L, own, ldict->dict, key) : push_busy(L);
}

/* --- leases --------------------------------------------------------------------------------------- */

struct llease {
    struct held        held;
    struct list        link;  /* in own->leases */
    struct dict_lease *lease; /* NULL: not ours, or given back */
    struct task       *task;  /* that holds it */
    struct dict       *dict;
    uint64_t           hash;
};

static struct llease *check_lease(lua_State *L)
{
    return luaL_checkudata(L, 1, LEASE_METATABLE);
}

static void give_back(struct llease *llease)
{
    struct dict_lease *lease = llease->lease;

    llease->lease = NULL;
    list_remove(&llease->link);
    task_unhold(&llease->held);
    if (lease)
        dict_lease_end(lease);
}

static void on_task_end(struct held *held)
{
    give_back(container_of(held, struct llease, held));
}

static struct llease *new_lease(lua_State *L, struct dict *dict, uint64_t hash)
{
    struct llease *llease = lclass_new(L, LEASE_METATABLE, sizeof(*llease));

    *llease = (struct llease){ .held = { .release = on_task_end }, .dict = dict, .hash = hash };
    list_init(&llease->held.link);
    list_init(&llease->link);
    return llease;
}

static int hold(struct llease *llease, struct ldict_own *own, struct task *task,
                struct dict_lease *lease)
{
    llease->lease = lease;
    llease->task  = task;
    list_append(&own->leases, &llease->link);
    task_hold(task, &llease->held);
    return 1; /* it is on top */
}

/* lease:holds() -> boolean: false: it took too long, and another computes the value */
static int llease_holds(lua_State *L)
{
    struct llease *llease = check_lease(L);

    lua_pushboolean(L, llease->lease && dict_lease_holds(llease->lease));
    return 1;
}

/* lease:give_back() */
static int llease_give_back(lua_State *L)
{
    give_back(check_lease(L));
    return 0;
}

/* A term that ends with its task's deadline, by which it is given back; this is for a thread that
 * hangs. */
static uint64_t term_ms(const struct task *task)
{
    enum { GRACE_MS = 1000 };
    double left = task_time_left(task);

    return left >= 0 && left * 1000 + GRACE_MS < DICT_LEASE_MS ? (uint64_t)(left * 1000) + GRACE_MS
                                                               : DICT_LEASE_MS;
}

/* Who computes a value would wait for itself, and so would a child for which it waits. */
static bool waits_for_itself(const struct ldict_own *own, const struct task *task,
                             const struct dict *dict, uint64_t hash)
{
    list_each(node, &own->leases)
    {
        struct llease *llease = container_of(node, struct llease, link);

        if (llease->dict == dict && llease->hash == hash && lwaits_for(llease->task, task))
            return true;
    }
    return false;
}

static int push_look_again(lua_State *L)
{
    lua_pushboolean(L, true);
    return 1;
}

/* The userdata for the lease is at 3. */
static int push_claimed(lua_State *L, void *op)
{
    struct lwait      *wait  = op;
    struct dict_lease *lease = wait->waiter.lease;
    struct task       *task  = wait->task;
    struct ldict_own  *own   = wait->own;

    free(wait);
    if (!lease || !dict_lease_take(lease, term_ms(task), ldict_now_ms(L)))
        return push_look_again(L);
    lua_settop(L, 3);
    return hold(lua_touserdata(L, 3), own, task, lease);
}

int ldict_claim(lua_State *L)
{
    static const char  WHERE[] = "shared:get_or_compute";
    struct ldict      *ldict   = ldict_check(L);
    struct str         key     = ldict_check_key(L, WHERE);
    uint64_t           hash    = map_hash(key);
    struct task       *task    = task_current(L);
    struct dict_lease *lease;
    struct llease     *llease;
    struct lwait      *wait;
    uint64_t           wait_ms;
    enum dict_claim    claim;

    if (task_is_cancelled(task))
        return task_stop(L);
    if (waits_for_itself(ldict_own(L), task, ldict->dict, hash))
        return lerror_misuse(L,
                             "%s: this would wait for itself: the function that computes a "
                             "value asks for the same key",
                             WHERE);
    lua_settop(L, 2);
    llease = new_lease(L, ldict->dict, hash);
    wait   = new_wait(L, task);
    claim  = dict_claim(ldict->dict, &wait->waiter, key, term_ms(task), ldict_now_ms(L), &lease,
                        &wait_ms);
    if (claim == DICT_CLAIM_WAITS)
        return task_wait_for(L, wait, disarm_wait, push_claimed, wait_ms, push_look_again);
    free(wait);
    switch (claim) {
    case DICT_CLAIM_VALUE: return push_look_again(L);
    case DICT_CLAIM_MINE: return hold(llease, ldict_own(L), task, lease);
    case DICT_CLAIM_FULL: return push_busy(L);
    default: return lerror_nil(L, "unavailable", "no memory for a lease");
    }
}

static int llease_gc(lua_State *L)
{
    give_back(lua_touserdata(L, 1));
    return 0;
}

void ldict_push_lease_class(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "holds", llease_holds },
                                        { "give_back", llease_give_back },
                                        { "__gc", llease_gc },
                                        { NULL, NULL } };

    lclass_push(L, LEASE_METATABLE, METHODS, 0);
}
