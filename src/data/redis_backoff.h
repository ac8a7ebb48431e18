/* data/redis_backoff.h - how long to wait before the next try: doubled each time up to half a second,
 * and each time a random part of it, so that workers and machines do not come all at once. A
 * server that is back is found within a second. */
#ifndef DATA_REDIS_BACKOFF_H
#define DATA_REDIS_BACKOFF_H

#include <stdint.h>

#include "base/rand.h"

enum {
    REDIS_BACKOFF_FIRST_MS = 20,
    REDIS_BACKOFF_MAX_MS   = 500,
};

/* FAILURES in a row, 1 or more. */
static inline uint64_t redis_backoff_ms(unsigned failures)
{
    uint64_t most = REDIS_BACKOFF_FIRST_MS;

    for (unsigned i = 1; i < failures && most < REDIS_BACKOFF_MAX_MS; i++)
        most *= 2;
    if (most > REDIS_BACKOFF_MAX_MS)
        most = REDIS_BACKOFF_MAX_MS;
    return most / 2 + rand_below(most / 2 + 1);
}

#endif
