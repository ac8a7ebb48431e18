/* data/dict_shard.h - one part of a shared dictionary: a lock, entries in the order of their use, and
 * a budget that they never exceed, since they lie in memory of the shard's own.
 *
 * All functions that take a shard want it held: for writing, but for dict_shard_find(). */
#ifndef DATA_DICT_SHARD_H
#define DATA_DICT_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "data/dict_lock.h"
#include "data/dict_room.h"
#include "data/dict_value.h"
#include "data/dict_waits.h"

struct dict_entry {
    struct dict_entry *chain; /* the next of its bucket */
    struct list        used;  /* in shard->used */
    uint64_t           hash;
    uint64_t           expires_ms; /* UINT64_MAX: never */
    uint64_t           touched_ms; /* when it was last put in front */
    double             number;
    uint32_t           key_bytes, value_bytes;
    bool               is_number;
    char               bytes[]; /* the key, the value */
};

struct dict_shard {
    struct dict_lock    lock;
    struct dict_entry **buckets; /* owned */
    size_t              bucket_count;
    size_t              sweep_at; /* the bucket that is looked at next for what has expired */
    struct list         entries;  /* the most recently used first */
    struct dict_room    room;     /* where they lie */
    size_t              bytes_max, used; /* used: entries with what they cost, and the buckets */
    size_t              empty_bytes;     /* used when there is nothing in it */
    uint64_t            count, evicted, expired;
    struct dict_waits   waits;
};

/* False: no memory. */
bool dict_shard_init(struct dict_shard *shard, size_t bytes_max);
void dict_shard_fini(struct dict_shard *shard);

size_t dict_entry_bytes(size_t key_bytes, size_t value_bytes); /* with all that it costs */
struct dict_value dict_entry_value(const struct dict_entry *entry);

/* NULL: there is none that lives at NOW_MS. */
struct dict_entry *dict_shard_find(const struct dict_shard *shard, struct str key, uint64_t hash,
                                   uint64_t now_ms);
void dict_shard_touch(struct dict_shard *shard, struct dict_entry *entry, uint64_t now_ms);
/* A new entry takes the place of one with the same key; the least recently used go until it fits, which
 * it must: dict_entry_bytes() is at most room.bytes. A few buckets are swept. */
void dict_shard_put(struct dict_shard *shard, struct str key, uint64_t hash,
                    const struct dict_value *value, uint64_t expires_ms, uint64_t now_ms);
void dict_shard_drop(struct dict_shard *shard, struct dict_entry *entry);

#endif
