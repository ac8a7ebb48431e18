/* data/dict_waits.h - who waits for keys of one shard, and who computes them. Guarded by the shard's
 * lock; data/dict_lease.h is how others get here.
 *
 * Keys stand here as their hashes, all 64 bits of them: two keys with the same one would wake each
 * other for nothing, and everybody who wakes looks again anyway. */
#ifndef DATA_DICT_WAITS_H
#define DATA_DICT_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "ev/inbox.h"

struct dict_lease;
struct dict_shard;

enum {
    DICT_WAITERS_MAX = 4096, /* for each shard */
    DICT_WAIT_LISTS  = 32,
};

/* One who waits; its owner's memory. Set home, done and drop before; the rest is private but for
 * `lease`. */
struct dict_waiter {
    struct message message; /* how it comes home */
    struct inbox  *home;
    void (*done)(struct dict_waiter *waiter); /* on home's thread: woken; the owner's again */
    /* Any thread, instead of done(): it cannot come home, or was abandoned. Frees it. */
    void (*drop)(struct dict_waiter *waiter);
    struct dict_lease *lease; /* in done(): not NULL, the key is ours to compute from now on */

    struct list        link;
    bool               queued; /* in a list of the shard or of a lease; false: on its way home */
    struct dict_shard *shard;
    uint64_t           hash;
    bool               abandoned; /* home's thread: nobody waits any more */
};

/* Who has it computes the key; the others wait for that one. */
struct dict_lease {
    struct list        link; /* in dict_waits->leases; alone: it was taken away */
    struct dict_shard *shard;
    uint64_t           hash;
    uint64_t           deadline_ms; /* when somebody else may take it */
    struct list        waiters;
};

struct dict_waits {
    struct list waiters[DICT_WAIT_LISTS]; /* for a change */
    struct list leases;
    unsigned    waiter_count; /* in all lists, also those of leases */
};

void dict_waits_init(struct dict_waits *waits);

/* False: there are DICT_WAITERS_MAX already. LEASE NULL: for a change of the key. */
bool dict_waits_add(struct dict_waits *waits, struct dict_waiter *waiter, struct dict_lease *lease);
/* True: it was in a list. */
bool dict_waits_remove(struct dict_waits *waits, struct dict_waiter *waiter);

/* Moves one who is in a list to WOKEN. */
void dict_waits_take(struct dict_waits *waits, struct dict_waiter *waiter, struct list *woken);
/* Moves to WOKEN whom a change of the key wakes; with HAS_VALUE those who wait for its computation,
 * too. */
void dict_waits_change(struct dict_waits *waits, uint64_t hash, bool has_value, struct list *woken);

struct dict_lease *dict_waits_find_lease(struct dict_waits *waits, uint64_t hash);

/* Without the lock: sends the waiters of WOKEN home. */
void dict_waits_send(struct list *woken);

#endif
