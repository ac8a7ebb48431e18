#include "data/dict_shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum {
    BUCKET_BYTES = 256, /* of budget for each bucket: chains are short where entries are not tiny */
    SWEEP        = 2,   /* buckets looked at by each write */
};

/* --- entries -------------------------------------------------------------------------------------- */

size_t dict_entry_bytes(size_t key_bytes, size_t value_bytes)
{
    return dict_room_cost(sizeof(struct dict_entry) + key_bytes + value_bytes);
}

static size_t bytes_of(const struct dict_entry *entry)
{
    return dict_entry_bytes(entry->key_bytes, entry->value_bytes);
}

static void fill(struct dict_entry *entry, struct str key, uint64_t hash,
                 const struct dict_value *value, uint64_t expires_ms)
{
    size_t value_bytes = value->is_number ? 0 : value->bytes.len;

    *entry = (struct dict_entry){ .hash        = hash,
                                  .expires_ms  = expires_ms,
                                  .number      = value->number,
                                  .key_bytes   = (uint32_t)key.len,
                                  .value_bytes = (uint32_t)value_bytes,
                                  .is_number   = value->is_number };
    list_init(&entry->used);
    if (key.len)
        memcpy(entry->bytes, key.at, key.len);
    if (value_bytes)
        memcpy(entry->bytes + key.len, value->bytes.at, value_bytes);
}

struct dict_value dict_entry_value(const struct dict_entry *entry)
{
    return (struct dict_value){ entry->is_number, entry->number,
                                str_make(entry->bytes + entry->key_bytes, entry->value_bytes) };
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
    size_t room;

    shard->bucket_count = buckets_for(bytes_max);
    shard->buckets      = calloc(shard->bucket_count, sizeof(struct dict_entry *));
    shard->sweep_at     = 0;
    shard->bytes_max    = bytes_max;
    shard->empty_bytes =
        sizeof(*shard) + DICT_ROOM_EDGES + shard->bucket_count * sizeof(struct dict_entry *);
    shard->used  = shard->empty_bytes;
    shard->count = shard->evicted = shard->expired = 0;
    list_init(&shard->entries);
    dict_waits_init(&shard->waits);
    dict_lock_init(&shard->lock);
    room = (bytes_max - shard->empty_bytes) / DICT_ROOM_ALIGN * DICT_ROOM_ALIGN;
    return dict_room_init(&shard->room, room) && shard->buckets;
}

void dict_shard_fini(struct dict_shard *shard)
{
    dict_room_fini(&shard->room);
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

void dict_shard_drop(struct dict_shard *shard, struct dict_entry *entry)
{
    struct dict_entry **at = bucket_of(shard, entry->hash);

    while (*at != entry)
        at = &(*at)->chain;
    *at = entry->chain;
    list_remove(&entry->used);
    shard->used -= bytes_of(entry);
    shard->count--;
    dict_room_give_back(&shard->room, entry);
}

static void sweep_bucket(struct dict_shard *shard, struct dict_entry *entry, uint64_t now_ms)
{
    while (entry) {
        struct dict_entry *next = entry->chain;

        if (entry->expires_ms <= now_ms) {
            dict_shard_drop(shard, entry);
            shard->expired++;
        }
        entry = next;
    }
}

/* What has expired goes before anything that has not. */
static void sweep(struct dict_shard *shard, uint64_t now_ms)
{
    for (unsigned i = 0; i < SWEEP; i++) {
        sweep_bucket(shard, shard->buckets[shard->sweep_at], now_ms);
        shard->sweep_at = (shard->sweep_at + 1) & (shard->bucket_count - 1);
    }
}

/* Ends at the latest when nothing else is there. */
static struct dict_entry *make_room(struct dict_shard *shard, size_t bytes)
{
    struct dict_entry *place;

    while (!(place = dict_room_take(&shard->room, bytes))) {
        assert(!list_is_empty(&shard->entries));
        dict_shard_drop(shard, container_of(shard->entries.prev, struct dict_entry, used));
        shard->evicted++;
    }
    return place;
}

void dict_shard_put(struct dict_shard *shard, struct str key, uint64_t hash,
                    const struct dict_value *value, uint64_t expires_ms, uint64_t now_ms)
{
    struct dict_entry **bucket      = bucket_of(shard, hash);
    struct dict_entry  *entry       = find(shard, key, hash);
    size_t              value_bytes = value->is_number ? 0 : value->bytes.len;

    if (entry)
        dict_shard_drop(shard, entry);
    sweep(shard, now_ms);
    entry = make_room(shard, sizeof(*entry) + key.len + value_bytes);
    fill(entry, key, hash, value, expires_ms);
    entry->chain = *bucket;
    *bucket      = entry;
    shard->used += bytes_of(entry);
    shard->count++;
    dict_shard_touch(shard, entry, now_ms);
}
