/* base/map.h - from byte strings to pointers: a hash table with open addressing.
 *
 * Keys are hashed with SipHash-1-3 under a key of the process's own, so a client that chooses
 * names cannot choose collisions. A key's bytes are not copied: they must live as long as the
 * entry, best inside the value. Not for several threads at once. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct map_slot {
    struct str key;   /* borrowed */
    void      *value; /* NULL: the slot is free */
    uint64_t   hash;
};

struct map {
    struct map_slot *slots; /* owned; a power of two, NULL while nothing was put */
    size_t           slot_count;
    size_t           count;
};

/* The hash that a map uses, for tables of other kinds. Any thread. */
uint64_t map_hash(struct str key);
/* The same under a key that the caller has: where all processes must come to one hash. */
uint64_t map_hash_with(const uint64_t secret[2], struct str key);

/* Allocates nothing yet. */
void map_init(struct map *map);
/* Frees the table; keys and values stay their owner's. */
void map_fini(struct map *map);

/* NULL when there is no such key. */
void *map_get(const struct map *map, struct str key);

/* VALUE (not NULL) stands under KEY from now on. The value that stood there before goes to
 * *REPLACED (NULL is fine, and NULL when there was none). False: no memory, nothing changed. */
bool map_put(struct map *map, struct str key, void *value, void **replaced) MUST_CHECK;

/* Returns the value taken out, or NULL. */
void *map_remove(struct map *map, struct str key);

/* Walks the entries, in no order: *CURSOR begins at 0. NULL: that was all. Nothing may be put or
 * removed during the walk. */
void *map_next(const struct map *map, size_t *cursor, struct str *key);

#endif
