#include "base/log_ring.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 };

struct log_ring *log_ring_new(size_t size)
{
    struct log_ring *ring = aligned_alloc(64, sizeof(*ring));

    if (!ring)
        return NULL;
    memset(ring, 0, sizeof(*ring));
    ring->size  = size;
    ring->bytes = malloc(size);
    if (!ring->bytes) {
        free(ring);
        return NULL;
    }
    return ring;
}

void log_ring_free(struct log_ring *ring)
{
    if (ring)
        free(ring->bytes);
    free(ring);
}

/* Bytes that the consumer has not released. Looks at its place only if what was seen before would
 * not do, since each look takes the cache line away from it. */
static uint64_t used_after(struct log_ring *ring, uint64_t head, size_t bytes)
{
    if (head + bytes - ring->tail_seen > ring->size / 2)
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return head - ring->tail_seen;
}

struct log_record *log_ring_reserve(struct log_ring *ring, size_t len)
{
    uint64_t           head   = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t             offset = head & (ring->size - 1);
    size_t             to_end = ring->size - offset;
    size_t             bytes  = (sizeof(struct log_record) + len + ALIGNMENT - 1) & -ALIGNMENT;
    size_t             pad    = bytes > to_end ? to_end : 0;
    struct log_record *record = (struct log_record *)(void *)(ring->bytes + offset);

    if (len > ring->size / 2 || used_after(ring, head, pad + bytes) + pad + bytes > ring->size) {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    if (pad) { /* a record is never split: what is left at the end stays empty */
        record->bytes      = (uint32_t)pad;
        record->is_padding = true;
        record             = (struct log_record *)(void *)ring->bytes;
    }
    record->bytes      = (uint32_t)bytes;
    record->is_padding = false;
    record->len        = (uint32_t)len;
    ring->reserved     = head + pad + bytes;
    return record;
}

bool log_ring_commit(struct log_ring *ring)
{
    /* Sequentially consistent: the caller looks next whether the consumer sleeps, and the consumer,
     * having said so, looks here (log.c). */
    atomic_store(&ring->head, ring->reserved);
    return ring->reserved - ring->tail_seen > ring->size / 2;
}

const struct log_record *log_ring_peek(struct log_ring *ring)
{
    uint64_t                 tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const struct log_record *record;

    if (tail == atomic_load_explicit(&ring->head, memory_order_acquire))
        return NULL;
    record = (const struct log_record *)(const void *)(ring->bytes + (tail & (ring->size - 1)));
    if (!record->is_padding)
        return record;
    log_ring_release(ring, record);
    return (const struct log_record *)(const void *)ring->bytes;
}

void log_ring_release(struct log_ring *ring, const struct log_record *record)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    atomic_store_explicit(&ring->tail, tail + record->bytes, memory_order_release);
}

bool log_ring_is_empty(const struct log_ring *ring)
{
    return atomic_load(&ring->head) == atomic_load(&ring->tail);
}
