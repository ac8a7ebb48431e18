#include "data/dict_lease.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/map.h"
#include "data/dict.h"
#include "data/dict_shard.h"

/* --- waiters ------------------------------------------------------------------------------------ */

static struct dict_waiter *waiter_of(struct message *message)
{
    return container_of(message, struct dict_waiter, message);
}

static void drop_waiter(struct message *message)
{
    struct dict_waiter *waiter = waiter_of(message);

    if (waiter->lease)
        dict_lease_end(waiter->lease);
    waiter->drop(waiter);
}

static void deliver_waiter(struct message *message)
{
    struct dict_waiter *waiter = waiter_of(message);

    if (waiter->abandoned)
        drop_waiter(message);
    else
        waiter->done(waiter);
}

static void prepare(struct dict_waiter *waiter, struct dict_shard *shard, uint64_t hash)
{
    waiter->message   = (struct message){ NULL, deliver_waiter, drop_waiter };
    waiter->lease     = NULL;
    waiter->shard     = shard;
    waiter->hash      = hash;
    waiter->queued    = false;
    waiter->abandoned = false;
    list_init(&waiter->link);
}

/* Locked. */
static bool differs(const struct dict_entry *entry, const struct dict_value *seen)
{
    struct dict_value value;

    if (!entry || !seen)
        return entry || seen;
    value = dict_entry_value(entry);
    return !dict_value_is(&value, seen);
}

static int wait_for_change(struct dict *dict, struct dict_waiter *waiter, struct str key,
                           bool look_first, const struct dict_value *seen, uint64_t now_ms)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    int                rc    = 0;

    prepare(waiter, shard, hash);
    dict_lock_write(&shard->lock);
    if (look_first && differs(dict_shard_find(shard, key, hash, now_ms), seen))
        rc = ERR_EXISTS;
    else if (!dict_waits_add(&shard->waits, waiter, NULL))
        rc = ERR_BUSY;
    dict_unlock_write(&shard->lock);
    return rc;
}

int dict_wait(struct dict *dict, struct dict_waiter *waiter, struct str key, uint64_t now_ms)
{
    return wait_for_change(dict, waiter, key, false, NULL, now_ms);
}

int dict_wait_unless(struct dict *dict, struct dict_waiter *waiter, struct str key,
                     const struct dict_value *seen, uint64_t now_ms)
{
    return wait_for_change(dict, waiter, key, true, seen, now_ms);
}

bool dict_unwait(struct dict_waiter *waiter)
{
    struct dict_shard *shard = waiter->shard;
    bool               was_queued;

    dict_lock_write(&shard->lock);
    was_queued = dict_waits_remove(&shard->waits, waiter);
    dict_unlock_write(&shard->lock);
    if (!was_queued)
        waiter->abandoned = true;
    return was_queued;
}

/* --- leases ------------------------------------------------------------------------------------- */

static struct dict_lease *new_lease(struct dict_shard *shard, uint64_t hash, uint64_t deadline_ms)
{
    struct dict_lease *lease = malloc(sizeof(*lease));

    if (!lease)
        return NULL;
    *lease = (struct dict_lease){ .shard = shard, .hash = hash, .deadline_ms = deadline_ms };
    list_init(&lease->link);
    list_init(&lease->waiters);
    return lease;
}

/* Locked. FRESH takes the place of OLD, which its holder still has, but for nothing. */
static void replace(struct dict_waits *waits, struct dict_lease *old, struct dict_lease *fresh)
{
    if (old) {
        list_remove(&old->link);
        list_splice(&fresh->waiters, &old->waiters);
    }
    list_append(&waits->leases, &fresh->link);
}

/* Locked. */
static enum dict_claim claim(struct dict_shard *shard, struct dict_waiter *waiter,
                             struct dict_lease *fresh, struct str key, uint64_t now_ms,
                             uint64_t *wait_ms)
{
    struct dict_lease *lease;

    if (dict_shard_find(shard, key, waiter->hash, now_ms))
        return DICT_CLAIM_VALUE;
    lease = dict_waits_find_lease(&shard->waits, waiter->hash);
    if (!lease || lease->deadline_ms <= now_ms) {
        replace(&shard->waits, lease, fresh);
        return DICT_CLAIM_MINE;
    }
    *wait_ms = lease->deadline_ms - now_ms;
    return dict_waits_add(&shard->waits, waiter, lease) ? DICT_CLAIM_WAITS : DICT_CLAIM_FULL;
}

enum dict_claim dict_claim(struct dict *dict, struct dict_waiter *waiter, struct str key,
                           uint64_t term_ms, uint64_t now_ms, struct dict_lease **lease,
                           uint64_t *wait_ms)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    struct dict_lease *fresh = new_lease(shard, hash, now_ms + term_ms);
    enum dict_claim    result;

    if (!fresh)
        return DICT_CLAIM_NO_MEMORY;
    prepare(waiter, shard, hash);
    dict_lock_write(&shard->lock);
    result = claim(shard, waiter, fresh, key, now_ms, wait_ms);
    dict_unlock_write(&shard->lock);
    if (result == DICT_CLAIM_MINE)
        *lease = fresh;
    else
        free(fresh);
    return result;
}

/* Locked. It was taken away when it stands in no list. */
static bool holds(const struct dict_lease *lease)
{
    return list_is_linked(&lease->link);
}

bool dict_lease_take(struct dict_lease *lease, uint64_t term_ms, uint64_t now_ms)
{
    bool is_ours;

    dict_lock_write(&lease->shard->lock);
    is_ours = holds(lease);
    if (is_ours)
        lease->deadline_ms = now_ms + term_ms;
    dict_unlock_write(&lease->shard->lock);
    if (!is_ours)
        free(lease);
    return is_ours;
}

bool dict_lease_holds(struct dict_lease *lease)
{
    bool is_ours;

    dict_lock_write(&lease->shard->lock);
    is_ours = holds(lease);
    dict_unlock_write(&lease->shard->lock);
    return is_ours;
}

/* Locked. False: nobody waits for it, or it was taken away. */
static bool pass_on(struct dict_waits *waits, struct dict_lease *lease, struct list *woken)
{
    struct dict_waiter *next;

    if (!holds(lease))
        return false;
    if (list_is_empty(&lease->waiters)) {
        list_remove(&lease->link);
        return false;
    }
    next        = container_of(lease->waiters.next, struct dict_waiter, link);
    next->lease = lease;
    dict_waits_take(waits, next, woken);
    return true;
}

void dict_lease_end(struct dict_lease *lease)
{
    struct dict_shard *shard = lease->shard;
    struct list        woken = LIST_INIT(woken);
    bool               passed;

    dict_lock_write(&shard->lock);
    passed = pass_on(&shard->waits, lease, &woken);
    dict_unlock_write(&shard->lock);
    if (!passed)
        free(lease);
    dict_waits_send(&woken);
}
