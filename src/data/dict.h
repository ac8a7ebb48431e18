/* data/dict.h - named dictionaries that all threads of the process share (API, section 10).
 *
 * A dictionary is cut into shards by a hash with a seed of the process's own. Each shard has a lock,
 * held for one copy, and a part of the budget: what lies in it, with all that it costs, is never more
 * than that. The least recently used entries go first, to within DICT_TOUCH_MS: a read within that
 * time after the last writes nothing, so reads of a hot key do not disturb each other.
 *
 * Times are milliseconds of one monotonic clock, which the caller reads: NOW_MS. Any thread. */
#ifndef DATA_DICT_H
#define DATA_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "data/dict_value.h"

struct buf;
struct dict;
struct dicts;
struct err;

enum {
    DICT_COUNT_MAX      = 256, /* dictionaries in a process: their names are the code's */
    DICT_NAME_BYTES_MAX = 64,
    DICT_KEY_BYTES_MAX  = 4096,
    DICT_BYTES_MIN      = 64 * 1024,
    DICT_BYTES          = 16 * 1024 * 1024, /* where nobody says anything */
    DICT_TOUCH_MS       = 100,
};
#define DICT_BYTES_MAX (UINT64_C(1) << 40)

/* --- dictionaries ------------------------------------------------------------------------------- */

int  dicts_open(struct dicts **out, struct err *err);
void dicts_close(struct dicts *dicts); /* with all that is in them; NULL is fine */

/* The dictionary NAME, which is made if there is none; it lives as long as DICTS. BYTES counts only
 * then (0: DICT_BYTES); dict_bytes() tells what it has. ERR_INVALID: name or size; ERR_TOO_LARGE: too
 * many of them; ERR_MEMORY. */
int      dicts_get(struct dict **out, struct dicts *dicts, struct str name, uint64_t bytes,
                   struct err *err);
uint64_t dict_bytes(const struct dict *dict);
/* The most that a key and its value may take together. */
size_t dict_entry_bytes_max(const struct dict *dict);

struct dict_stats {
    const char *name;
    uint64_t    bytes;   /* the budget */
    uint64_t    used;    /* of it */
    uint64_t    entries; /* some of them may have expired */
    uint64_t    evicted; /* since the start, to make room */
    uint64_t    expired; /* since the start, when found */
};
/* Fills at most MAX of OUT, returns how many. */
unsigned dicts_stats(struct dicts *dicts, struct dict_stats *out, unsigned max);

/* --- entries -------------------------------------------------------------------------------------- */

/* BYTES gets the value if it is no number: what was in it before is gone. ERR_NOT_FOUND; ERR_MEMORY:
 * BYTES cannot take it. */
int dict_get(struct dict *dict, struct str key, uint64_t now_ms, struct dict_value *value,
             struct buf *bytes);

/* Keys have at most DICT_KEY_BYTES_MAX bytes: who calls looks. TTL_MS 0: until it is evicted. 0;
 * ERR_TOO_LARGE: it would not fit if nothing else were there, and what was there before is there. */
int dict_set(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
             uint64_t now_ms);
/* The same, but ERR_EXISTS if there is a value. */
int dict_add(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
             uint64_t now_ms);
/* The same, but ERR_NOT_FOUND if there is none. */
int dict_replace(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
                 uint64_t now_ms);
/* The same if what is there equals OLD (NULL: there is nothing), else ERR_EXISTS. VALUE NULL deletes.
 * The entry keeps its time to live. */
int dict_cas(struct dict *dict, struct str key, const struct dict_value *old,
             const struct dict_value *value, uint64_t now_ms);
/* Adds BY to a number; one that is not there begins at 0 and lives for TTL_MS (0: until it is evicted).
 * ERR_INVALID: what is there is no number. */
int dict_incr(struct dict *dict, struct str key, double by, uint64_t ttl_ms, uint64_t now_ms,
              double *sum);
/* False: there was none. */
bool dict_delete(struct dict *dict, struct str key, uint64_t now_ms);

/* For data/dict_lease.c: where the key of HASH lies. */
struct dict_shard;
struct dict_shard *dict_shard_of(const struct dict *dict, uint64_t hash);

#endif
