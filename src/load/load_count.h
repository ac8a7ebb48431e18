/* load/load_count.h - what one thread of a load counts: cells that it alone writes and any thread
 * reads. Everything sent is answered, a fault, or still under way. */
#ifndef LOAD_LOAD_COUNT_H
#define LOAD_LOAD_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/hist.h"

enum load_fault {
    LOAD_REFUSED,         /* no connection was to be had */
    LOAD_CONNECT_TIMEOUT, /* nor an answer to that */
    LOAD_RESET,           /* the connection broke under a request */
    LOAD_CLOSED,          /* the server ended it without the response */
    LOAD_TIMEOUT,         /* no response in time */
    LOAD_MALFORMED,       /* what came is no HTTP response */
    LOAD_TLS,             /* no connection, for the handshake failed */
    LOAD_STREAM_REFUSED,  /* HTTP/2: the server did not look at it, be it by GOAWAY */
    LOAD_STREAM_RESET,    /* HTTP/2: the server gave it up */
    LOAD_FAULTS,
    LOAD_WELL = LOAD_FAULTS, /* none of these */
};

enum {
    LOAD_WS_STATUS = 200,  /* as which a message that came back counts */
    LOAD_STATUSES  = 600,  /* larger ones count as the largest */
    LOAD_LATE_US   = 1000, /* a request that leaves as long after its planned moment is late */
};

struct load_counts {
    _Atomic uint64_t sent;
    _Atomic uint64_t statuses[LOAD_STATUSES]; /* by them: whole responses */
    _Atomic uint64_t mismatched;              /* of these: not the body that was expected */
    _Atomic uint64_t faults[LOAD_FAULTS];
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t connections; /* opened */
    _Atomic uint64_t unasked;     /* of these: ended by bytes that answer no request */
    _Atomic uint64_t late;
    _Atomic uint64_t cpu_ns;  /* that the thread has used, as of its last look */
    struct hist      latency; /* us from the planned moment to the response's end */
    struct hist      service; /* us from sending it */
};

/* Released, so that who reads what became of requests and then how many were sent never sees more
 * of the former. */
static inline void load_count(_Atomic uint64_t *cell, uint64_t by)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + by,
                          memory_order_release);
}

#endif
