/* data/dict_lease.h - waiting for a change of a key, and computing a value once for all threads.
 *
 * A waiter is told by its own inbox, whichever thread changes the key. The lease of a key that has no
 * value says who computes it; the others wait. It ends when the value is there, or passes to one who
 * waits; if it is held beyond its term, the next one to ask takes it away. */
#ifndef DATA_DICT_LEASE_H
#define DATA_DICT_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "data/dict_value.h"
#include "data/dict_waits.h"

struct dict;

enum { DICT_LEASE_MS = 60000 }; /* the longest term */

/* Home's thread. 0: done() will run at the next change, or drop(). ERR_BUSY: too many wait. With SEEN
 * (may be NULL: there was no value) also ERR_EXISTS: it differs from that already. */
int dict_wait(struct dict *dict, struct dict_waiter *waiter, struct str key, uint64_t now_ms);
int dict_wait_unless(struct dict *dict, struct dict_waiter *waiter, struct str key,
                     const struct dict_value *seen, uint64_t now_ms);

/* Home's thread, before done() has run and before its inbox is closed. True: the waiter is the caller's
 * again. False: it is on its way home, where it will be dropped. */
bool dict_unwait(struct dict_waiter *waiter);

enum dict_claim {
    DICT_CLAIM_VALUE, /* there is a value */
    DICT_CLAIM_MINE,  /* *LEASE is the caller's */
    DICT_CLAIM_WAITS, /* another has it: done() will run when to look again, or with the lease */
    DICT_CLAIM_FULL,  /* too many wait */
    DICT_CLAIM_NO_MEMORY,
};

/* Home's thread. For DICT_CLAIM_WAITS, *WAIT_MS is when it is time to ask again, woken or not. */
enum dict_claim dict_claim(struct dict *dict, struct dict_waiter *waiter, struct str key,
                           uint64_t term_ms, uint64_t now_ms, struct dict_lease **lease,
                           uint64_t *wait_ms);

/* What came with done(): begins its term. False: it was taken away on its way, and is gone. */
bool dict_lease_take(struct dict_lease *lease, uint64_t term_ms, uint64_t now_ms);
/* False: it was taken away, so what was computed is not to be kept. */
bool dict_lease_holds(struct dict_lease *lease);
/* Gives it back, once. Who waits still gets it: after dict_set() nobody does. Any thread. */
void dict_lease_end(struct dict_lease *lease);

#endif
