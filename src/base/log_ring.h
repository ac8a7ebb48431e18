/* base/log_ring.h - a bounded queue of records from one thread to the log's thread, without locks.
 *
 * Records lie one behind the other in a ring of bytes. The producer reserves, fills, commits; the
 * consumer peeks, reads, releases. A full ring refuses and counts: a slow disk costs log lines,
 * never time. */
#ifndef BASE_LOG_RING_H
#define BASE_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct log_kind;

/* What stands before each record's payload. Padding to the ring's end has the first line only. */
struct log_record {
    uint32_t bytes; /* of header, payload and alignment */
    uint16_t level;
    bool     is_padding;

    uint32_t               len; /* of the payload */
    int64_t                wall_ms;
    const struct log_kind *kind;
};

struct log_ring {
    /* Set once. */
    char  *bytes;
    size_t size; /* a power of two */

    /* The producer's. */
    _Alignas(64) _Atomic uint64_t head; /* bytes committed since the start */
    uint64_t         reserved;          /* where head will stand after the commit */
    uint64_t         tail_seen;         /* the consumer's place, as last looked at */
    _Atomic uint64_t dropped;           /* records refused since the start */
    atomic_bool      closed;            /* the producer has gone: free it when it is empty */

    /* The consumer's. */
    _Alignas(64) _Atomic uint64_t tail; /* bytes released since the start */
    uint64_t dropped_told;              /* of `dropped`, what the log has told */
};

/* NULL: no memory. SIZE is a power of two. */
struct log_ring *log_ring_new(size_t size) MUST_CHECK;
void             log_ring_free(struct log_ring *ring);

/* --- producer --------------------------------------------------------------------------------- */

/* A record with LEN bytes of payload, its header filled but for level, kind and time. NULL: there
 * is no room; it has been counted as dropped. */
struct log_record *log_ring_reserve(struct log_ring *ring, size_t len);
/* Publishes what was reserved. True: the ring is over half full. */
bool log_ring_commit(struct log_ring *ring);

/* --- consumer --------------------------------------------------------------------------------- */

/* The oldest record, or NULL. */
const struct log_record *log_ring_peek(struct log_ring *ring);
void                     log_ring_release(struct log_ring *ring, const struct log_record *record);
bool                     log_ring_is_empty(const struct log_ring *ring);

static inline void *log_record_payload(const struct log_record *record)
{
    return (void *)(record + 1);
}

#endif
