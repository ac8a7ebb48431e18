/* net/tls_cache.h - sessions that a client may take up again: bytes by key, the least used make room.
 * Private to net/tls_*. */
#ifndef NET_TLS_CACHE_H
#define NET_TLS_CACHE_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct tls_cache {
    struct map  by_key;
    struct list newest_first;
    unsigned    count, count_max;
};

void tls_cache_init(struct tls_cache *cache, unsigned count_max);
void tls_cache_fini(struct tls_cache *cache);

/* Empty: there is none. Valid until the next call. */
struct str tls_cache_get(struct tls_cache *cache, struct str key);
/* In the place of what stood under KEY. Without memory it is forgotten. */
void tls_cache_put(struct tls_cache *cache, struct str key, struct str state);
void tls_cache_remove(struct tls_cache *cache, struct str key);

#endif
