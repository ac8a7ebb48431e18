#include "net/tls_cache.h"

#include <stdlib.h>
#include <string.h>

#include <mbedtls/platform_util.h>

#include "base/compiler.h"

struct entry {
    struct list link;
    size_t      key_len, len;
    char        bytes[]; /* the key, then the state */
};

void tls_cache_init(struct tls_cache *cache, unsigned count_max)
{
    map_init(&cache->by_key);
    list_init(&cache->newest_first);
    cache->count     = 0;
    cache->count_max = count_max;
}

static struct str key_of(const struct entry *entry)
{
    return str_make(entry->bytes, entry->key_len);
}

static void drop(struct tls_cache *cache, struct entry *entry)
{
    map_remove(&cache->by_key, key_of(entry));
    list_remove(&entry->link);
    cache->count--;
    mbedtls_platform_zeroize(entry->bytes, entry->key_len + entry->len);
    free(entry);
}

void tls_cache_fini(struct tls_cache *cache)
{
    while (!list_is_empty(&cache->newest_first))
        drop(cache, container_of(cache->newest_first.next, struct entry, link));
    map_fini(&cache->by_key);
}

struct str tls_cache_get(struct tls_cache *cache, struct str key)
{
    struct entry *entry = map_get(&cache->by_key, key);

    if (!entry)
        return STR_NONE;
    list_remove(&entry->link);
    list_prepend(&cache->newest_first, &entry->link);
    return str_make(entry->bytes + entry->key_len, entry->len);
}

void tls_cache_remove(struct tls_cache *cache, struct str key)
{
    struct entry *entry = map_get(&cache->by_key, key);

    if (entry)
        drop(cache, entry);
}

void tls_cache_put(struct tls_cache *cache, struct str key, struct str state)
{
    struct entry *entry = malloc(sizeof(*entry) + key.len + state.len);

    tls_cache_remove(cache, key);
    if (!entry)
        return;
    if (cache->count == cache->count_max)
        drop(cache, container_of(cache->newest_first.prev, struct entry, link));
    entry->key_len = key.len;
    entry->len     = state.len;
    memcpy(entry->bytes, key.at, key.len);
    memcpy(entry->bytes + key.len, state.at, state.len);
    if (!map_put(&cache->by_key, key_of(entry), entry, NULL)) {
        free(entry);
        return;
    }
    list_prepend(&cache->newest_first, &entry->link);
    cache->count++;
}
