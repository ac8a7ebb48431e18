#include "data/dict.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "data/dict_shard.h"

enum {
    SHARD_BYTES = 2 * 1024 * 1024, /* at least, where there is more than one */
    SHARDS_MAX  = 64,
    FIRST_ROOM  = 256, /* of a buffer for values */
};

struct dict {
    struct list        link; /* in dicts->all */
    char               name[DICT_NAME_BYTES_MAX + 1];
    uint64_t           bytes;
    struct dict_shard *shards; /* owned; a power of two */
    unsigned           shard_count;
};

struct dicts {
    pthread_mutex_t mutex; /* guards the list: a dictionary itself does not change */
    struct list     all;
    unsigned        count;
};

/* --- dictionaries ------------------------------------------------------------------------------- */

int dicts_open(struct dicts **out, struct err *err)
{
    struct dicts *dicts = malloc(sizeof(*dicts));

    if (!dicts)
        return err_set(err, ERR_MEMORY, "no memory for the shared dictionaries");
    pthread_mutex_init(&dicts->mutex, NULL);
    list_init(&dicts->all);
    dicts->count = 0;
    *out         = dicts;
    return 0;
}

static void free_dict(struct dict *dict, unsigned shards)
{
    for (unsigned i = 0; i < shards; i++)
        dict_shard_fini(&dict->shards[i]);
    free(dict->shards);
    free(dict);
}

void dicts_close(struct dicts *dicts)
{
    if (!dicts)
        return;
    list_each_safe(node, &dicts->all)
    {
        struct dict *dict = container_of(node, struct dict, link);

        free_dict(dict, dict->shard_count);
    }
    pthread_mutex_destroy(&dicts->mutex);
    free(dicts);
}

static unsigned shards_for(uint64_t bytes)
{
    unsigned count = 1;

    while (count < SHARDS_MAX && (uint64_t)count * 2 * SHARD_BYTES <= bytes)
        count *= 2;
    return count;
}

static struct dict *new_dict(struct str name, uint64_t bytes)
{
    struct dict *dict = calloc(1, sizeof(*dict));

    if (!dict)
        return NULL;
    memcpy(dict->name, name.at, name.len);
    dict->bytes       = bytes;
    dict->shard_count = shards_for(bytes);
    dict->shards =
        aligned_alloc(alignof(struct dict_shard), dict->shard_count * sizeof(struct dict_shard));
    if (!dict->shards) {
        free(dict);
        return NULL;
    }
    for (unsigned i = 0; i < dict->shard_count; i++) {
        if (!dict_shard_init(&dict->shards[i], (size_t)(bytes / dict->shard_count))) {
            free_dict(dict, i + 1);
            return NULL;
        }
    }
    return dict;
}

static struct dict *find_dict(const struct dicts *dicts, struct str name)
{
    list_each(node, &dicts->all)
    {
        struct dict *dict = container_of(node, struct dict, link);

        if (str_is(str_of(dict->name), name))
            return dict;
    }
    return NULL;
}

static int add_dict(struct dict **out, struct dicts *dicts, struct str name, uint64_t bytes,
                    struct err *err)
{
    if (dicts->count == DICT_COUNT_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "there are %d shared dictionaries already: give keys of their own to "
                       "things, not dictionaries",
                       DICT_COUNT_MAX);
    *out = new_dict(name, bytes);
    if (!*out)
        return err_set(err, ERR_MEMORY, "no memory for the shared dictionary %.*s", STR_ARG(name));
    list_append(&dicts->all, &(*out)->link);
    dicts->count++;
    return 0;
}

int dicts_get(struct dict **out, struct dicts *dicts, struct str name, uint64_t bytes,
              struct err *err)
{
    int rc = 0;

    if (name.len == 0 || name.len > DICT_NAME_BYTES_MAX || memchr(name.at, 0, name.len))
        return err_set(err, ERR_INVALID, "the name of a shared dictionary has 1 to %d bytes",
                       DICT_NAME_BYTES_MAX);
    if (bytes == 0)
        bytes = DICT_BYTES;
    if (bytes < DICT_BYTES_MIN || bytes > DICT_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a shared dictionary has from 64 KiB to 1 TiB");
    pthread_mutex_lock(&dicts->mutex);
    *out = find_dict(dicts, name);
    if (!*out)
        rc = add_dict(out, dicts, name, bytes, err);
    pthread_mutex_unlock(&dicts->mutex);
    return rc;
}

uint64_t dict_bytes(const struct dict *dict)
{
    return dict->bytes;
}

/* An entry's own sizes are 32 bits. */
static size_t entry_bytes_max(const struct dict *dict)
{
    size_t bytes = dict->shards->room.bytes;

    return bytes < INT32_MAX ? bytes : INT32_MAX;
}

size_t dict_entry_bytes_max(const struct dict *dict)
{
    return entry_bytes_max(dict) - dict_entry_bytes(0, 0);
}

static void add_stats(struct dict_stats *stats, struct dict_shard *shard)
{
    struct dict_reading reading = dict_lock_read(&shard->lock);

    stats->used += shard->used;
    stats->entries += shard->count;
    stats->evicted += shard->evicted;
    stats->expired += shard->expired;
    dict_unlock_read(&shard->lock, reading);
}

unsigned dicts_stats(struct dicts *dicts, struct dict_stats *out, unsigned max)
{
    unsigned count = 0;

    pthread_mutex_lock(&dicts->mutex);
    list_each(node, &dicts->all)
    {
        struct dict *dict = container_of(node, struct dict, link);

        if (count == max)
            break;
        out[count] = (struct dict_stats){ .name = dict->name, .bytes = dict->bytes };
        for (unsigned i = 0; i < dict->shard_count; i++)
            add_stats(&out[count], &dict->shards[i]);
        count++;
    }
    pthread_mutex_unlock(&dicts->mutex);
    return count;
}

/* The low bits choose the bucket. */
struct dict_shard *dict_shard_of(const struct dict *dict, uint64_t hash)
{
    return &dict->shards[hash >> 32 & (dict->shard_count - 1)];
}

/* --- reading ---------------------------------------------------------------------------------------- */

/* One look: ERR_BUSY when BYTES has too little room; *NEEDED tells how much. */
static int copy_value(struct dict_shard *shard, struct str key, uint64_t hash, uint64_t now_ms,
                      struct dict_value *value, struct buf *bytes, size_t *needed, bool *stale)
{
    const struct dict_entry *entry = dict_shard_find(shard, key, hash, now_ms);

    if (!entry)
        return ERR_NOT_FOUND;
    *stale = now_ms >= entry->touched_ms + DICT_TOUCH_MS;
    *value = dict_entry_value(entry);
    if (value->is_number)
        return 0;
    *needed = value->bytes.len;
    if (bytes->room < *needed)
        return ERR_BUSY;
    if (*needed)
        memcpy(bytes->at, value->bytes.at, *needed);
    bytes->len   = *needed;
    value->bytes = buf_str(bytes);
    return 0;
}

/* It was used, which has not been noted for a while. */
static void touch(struct dict_shard *shard, struct str key, uint64_t hash, uint64_t now_ms)
{
    struct dict_entry *entry;

    dict_lock_write(&shard->lock);
    entry = dict_shard_find(shard, key, hash, now_ms);
    if (entry)
        dict_shard_touch(shard, entry, now_ms);
    dict_unlock_write(&shard->lock);
}

int dict_get(struct dict *dict, struct str key, uint64_t now_ms, struct dict_value *value,
             struct buf *bytes)
{
    uint64_t           hash   = map_hash(key);
    struct dict_shard *shard  = dict_shard_of(dict, hash);
    size_t             needed = FIRST_ROOM;
    bool               stale  = false;
    int                rc;

    do {
        struct dict_reading reading;

        buf_clear(bytes);
        if (!buf_reserve(bytes, needed))
            return ERR_MEMORY;
        reading = dict_lock_read(&shard->lock);
        rc      = copy_value(shard, key, hash, now_ms, value, bytes, &needed, &stale);
        dict_unlock_read(&shard->lock, reading);
    } while (rc == ERR_BUSY);
    if (rc == 0 && stale)
        touch(shard, key, hash, now_ms);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------------- */

static uint64_t expiry(uint64_t ttl_ms, uint64_t now_ms)
{
    return ttl_ms ? now_ms + ttl_ms : UINT64_MAX;
}

/* VALUE NULL: nothing is to be kept. */
static bool fits(const struct dict *dict, struct str key, const struct dict_value *value)
{
    size_t value_bytes = value && !value->is_number ? value->bytes.len : 0;

    assert(key.len <= DICT_KEY_BYTES_MAX);
    return dict_entry_bytes(key.len, value_bytes) <= entry_bytes_max(dict);
}

/* The shard is locked, here and below. WOKEN: whom to send home without the lock. */
static void put(struct dict_shard *shard, struct str key, uint64_t hash,
                const struct dict_value *value, uint64_t expires_ms, uint64_t now_ms,
                struct list *woken)
{
    dict_shard_put(shard, key, hash, value, expires_ms, now_ms);
    dict_waits_change(&shard->waits, hash, true, woken);
}

static void drop(struct dict_shard *shard, struct dict_entry *entry, struct list *woken)
{
    dict_waits_change(&shard->waits, entry->hash, false, woken);
    dict_shard_drop(shard, entry);
}

enum condition { ALWAYS, ONLY_NEW, ONLY_THERE };

static bool is_met(enum condition condition, bool is_there)
{
    return condition == ALWAYS || is_there == (condition == ONLY_THERE);
}

static int set(struct dict *dict, struct str key, const struct dict_value *value,
               enum condition condition, uint64_t ttl_ms, uint64_t now_ms)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    struct list        woken = LIST_INIT(woken);
    int                rc    = 0;

    if (!fits(dict, key, value))
        return ERR_TOO_LARGE;
    dict_lock_write(&shard->lock);
    if (is_met(condition, dict_shard_find(shard, key, hash, now_ms) != NULL))
        put(shard, key, hash, value, expiry(ttl_ms, now_ms), now_ms, &woken);
    else
        rc = condition == ONLY_NEW ? ERR_EXISTS : ERR_NOT_FOUND;
    dict_unlock_write(&shard->lock);
    dict_waits_send(&woken);
    return rc;
}

int dict_set(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
             uint64_t now_ms)
{
    return set(dict, key, value, ALWAYS, ttl_ms, now_ms);
}

int dict_add(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
             uint64_t now_ms)
{
    return set(dict, key, value, ONLY_NEW, ttl_ms, now_ms);
}

int dict_replace(struct dict *dict, struct str key, const struct dict_value *value, uint64_t ttl_ms,
                 uint64_t now_ms)
{
    return set(dict, key, value, ONLY_THERE, ttl_ms, now_ms);
}

static bool holds(const struct dict_entry *entry, const struct dict_value *old)
{
    struct dict_value value;

    if (!entry || !old)
        return !entry && !old;
    value = dict_entry_value(entry);
    return dict_value_is(&value, old);
}

int dict_cas(struct dict *dict, struct str key, const struct dict_value *old,
             const struct dict_value *value, uint64_t now_ms)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    struct list        woken = LIST_INIT(woken);
    struct dict_entry *found;
    int                rc = 0;

    if (!fits(dict, key, value))
        return ERR_TOO_LARGE;
    dict_lock_write(&shard->lock);
    found = dict_shard_find(shard, key, hash, now_ms);
    if (!holds(found, old))
        rc = ERR_EXISTS;
    else if (value)
        put(shard, key, hash, value, found ? found->expires_ms : UINT64_MAX, now_ms, &woken);
    else if (found)
        drop(shard, found, &woken);
    dict_unlock_write(&shard->lock);
    dict_waits_send(&woken);
    return rc;
}

static int add_to(struct dict_shard *shard, struct dict_entry *entry, double by, uint64_t now_ms,
                  double *sum, struct list *woken)
{
    if (!entry->is_number)
        return ERR_INVALID;
    *sum = entry->number += by;
    dict_shard_touch(shard, entry, now_ms);
    dict_waits_change(&shard->waits, entry->hash, true, woken);
    return 0;
}

int dict_incr(struct dict *dict, struct str key, double by, uint64_t ttl_ms, uint64_t now_ms,
              double *sum)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    struct dict_value  first = { .is_number = true, .number = by };
    struct list        woken = LIST_INIT(woken);
    struct dict_entry *entry;
    int                rc = 0;

    if (!fits(dict, key, &first))
        return ERR_TOO_LARGE;
    dict_lock_write(&shard->lock);
    entry = dict_shard_find(shard, key, hash, now_ms);
    if (entry) {
        rc = add_to(shard, entry, by, now_ms, sum, &woken);
    } else {
        put(shard, key, hash, &first, expiry(ttl_ms, now_ms), now_ms, &woken);
        *sum = by;
    }
    dict_unlock_write(&shard->lock);
    dict_waits_send(&woken);
    return rc;
}

bool dict_delete(struct dict *dict, struct str key, uint64_t now_ms)
{
    uint64_t           hash  = map_hash(key);
    struct dict_shard *shard = dict_shard_of(dict, hash);
    struct list        woken = LIST_INIT(woken);
    struct dict_entry *entry;

    dict_lock_write(&shard->lock);
    entry = dict_shard_find(shard, key, hash, now_ms);
    if (entry)
        drop(shard, entry, &woken);
    dict_unlock_write(&shard->lock);
    dict_waits_send(&woken);
    return entry != NULL;
}
