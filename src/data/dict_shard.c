#include "data/dict_shard.h"

#include <stdlib.h>

#include "base/compiler.h"

enum {
    MALLOC_BYTES = 8,   /* what malloc() adds to a block, */
    MALLOC_ALIGN = 16,  /* and to what it rounds it up */
    BUCKET_BYTES = 256, /* of budget for each bucket: chains are short where entries are not tiny */
    SWEEP        = 2,   /* buckets looked at by each write */
};

/* --- entries -------------------------------------------------------------------------------------- */

size_t dict_entry_bytes(size_t key_bytes, size_t value_bytes)
{
    size_t bytes = sizeof(struct dict_entry) + key_bytes + value_bytes + MALLOC_BYTES;

    return (bytes + MALLOC_ALIGN - 1) / MALLOC_ALIGN * MALLOC_ALIGN;
}

static size_t bytes_of(const struct dict_entry *entry)
{
    return dict_entry_bytes(entry->key_bytes, entry->value_bytes);
}

struct dict_entry *dict_entry_new(struct str key, uint64_t hash, const struct dict_value *value)
{
    size_t             value_bytes = value->is_number ? 0 : value->bytes.len;
    struct dict_entry *entry       = malloc(sizeof(*entry) + key.len + value_bytes);

    if (!entry)
        return NULL;
    *entry = (struct dict_entry){ .hash        = hash,
                                  .expires_ms  = UINT64_MAX,
                                  .number      = value->number,
                                  .key_bytes   = (uint32_t)key.len,
                                  .value_bytes = (uint32_t)value_bytes,
                                  .is_number   = value->is_number };
    list_init(&entry->used);
    if (key.len)
        memcpy(entry->bytes, key.at, key.len);
    if (value_bytes)
        memcpy(entry->bytes + key.len, value->bytes.at, value_bytes);
    return entry;
}

void dict_entry_free(struct dict_entry *entry)
{
    free(entry);
}

struct dict_value dict_entry_value(const struct dict_entry *entry)
{
    return (struct dict_value){ entry->is_number, entry->number,
                                str_make(entry->bytes + entry->key_bytes, entry->value_bytes) };
}

/* --- after the lock --------------------------------------------------------------------------------- */

void dict_after_init(struct dict_after *after)
{
    after->garbage = NULL;
    list_init(&after->woken);
}

void dict_after_run(struct dict_after *after)
{
    while (after->garbage) {
        struct dict_entry *entry = after->garbage;

        after->garbage = entry->chain;
        free(entry);
    }
    dict_waits_send(&after->woken);
}

/* --- shards ----------------------------------------------------------------------------------------- */

static size_t buckets_for(size_t bytes)
{
    size_t count = 64;

    while (count * 2 * BUCKET_BYTES <= bytes)
        count *= 2;
    return count;
}

bool dict_shard_init(struct dict_shard *shard, size_t bytes_max)
{
    shard->bucket_count = buckets_for(bytes_max);
    shard->buckets      = calloc(shard->bucket_count, sizeof(struct dict_entry *));
    shard->sweep_at     = 0;
    shard->empty_bytes  = sizeof(*shard) + shard->bucket_count * sizeof(struct dict_entry *);
    shard->used         = shard->empty_bytes;
    shard->bytes_max    = bytes_max;
    shard->count = shard->evicted = shard->expired = 0;
    list_init(&shard->entries);
    dict_waits_init(&shard->waits);
    dict_lock_init(&shard->lock);
    return shard->buckets != NULL;
}

void dict_shard_fini(struct dict_shard *shard)
{
    list_each_safe(node, &shard->entries) free(container_of(node, struct dict_entry, used));
    free(shard->buckets);
    dict_lock_fini(&shard->lock);
}

static struct dict_entry **bucket_of(const struct dict_shard *shard, uint64_t hash)
{
    return &shard->buckets[hash & (shard->bucket_count - 1)];
}

static bool has_key(const struct dict_entry *entry, struct str key, uint64_t hash)
{
    return entry->hash == hash && str_is(str_make(entry->bytes, entry->key_bytes), key);
}

static struct dict_entry *find(const struct dict_shard *shard, struct str key, uint64_t hash)
{
    struct dict_entry *entry = *bucket_of(shard, hash);

    while (entry && !has_key(entry, key, hash))
        entry = entry->chain;
    return entry;
}

struct dict_entry *dict_shard_find(const struct dict_shard *shard, struct str key, uint64_t hash,
                                   uint64_t now_ms)
{
    struct dict_entry *entry = find(shard, key, hash);

    return entry && entry->expires_ms > now_ms ? entry : NULL;
}

void dict_shard_touch(struct dict_shard *shard, struct dict_entry *entry, uint64_t now_ms)
{
    entry->touched_ms = now_ms;
    list_remove(&entry->used);
    list_prepend(&shard->entries, &entry->used);
}

void dict_shard_drop(struct dict_shard *shard, struct dict_entry *entry, struct dict_after *after)
{
    struct dict_entry **at = bucket_of(shard, entry->hash);

    while (*at != entry)
        at = &(*at)->chain;
    *at = entry->chain;
    list_remove(&entry->used);
    shard->used -= bytes_of(entry);
    shard->count--;
    entry->chain   = after->garbage;
    after->garbage = entry;
}

static void sweep_bucket(struct dict_shard *shard, struct dict_entry *entry, uint64_t now_ms,
                         struct dict_after *after)
{
    while (entry) {
        struct dict_entry *next = entry->chain;

        if (entry->expires_ms <= now_ms) {
            dict_shard_drop(shard, entry, after);
            shard->expired++;
        }
        entry = next;
    }
}

/* What has expired goes before anything that has not. */
static void sweep(struct dict_shard *shard, uint64_t now_ms, struct dict_after *after)
{
    for (unsigned i = 0; i < SWEEP; i++) {
        sweep_bucket(shard, shard->buckets[shard->sweep_at], now_ms, after);
        shard->sweep_at = (shard->sweep_at + 1) & (shard->bucket_count - 1);
    }
}

static void make_room(struct dict_shard *shard, size_t bytes, struct dict_after *after)
{
    while (shard->used + bytes > shard->bytes_max) {
        dict_shard_drop(shard, container_of(shard->entries.prev, struct dict_entry, used), after);
        shard->evicted++;
    }
}

void dict_shard_put(struct dict_shard *shard, struct dict_entry *entry, uint64_t now_ms,
                    struct dict_after *after)
{
    struct dict_entry **bucket = bucket_of(shard, entry->hash);
    struct dict_entry  *old    = find(shard, str_make(entry->bytes, entry->key_bytes), entry->hash);

    if (old)
        dict_shard_drop(shard, old, after);
    sweep(shard, now_ms, after);
    make_room(shard, bytes_of(entry), after);
    entry->chain = *bucket;
    *bucket      = entry;
    shard->used += bytes_of(entry);
    shard->count++;
    dict_shard_touch(shard, entry, now_ms);
}
