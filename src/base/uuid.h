/* base/uuid.h - UUIDs of version 7 (RFC 9562, 5.7): they sort as they were made.
 *
 * 48 bits of milliseconds, a counter of 12, 62 random bits. Within a millisecond, and while the
 * clock stands or goes back, the counter goes on (6.2, method 1). One source for each thread. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdint.h>

enum { UUID_LEN = 36 };

/* Zeroed memory is ready. */
struct uuid_source {
    uint64_t ms; /* of the last one; may run ahead of the clock */
    unsigned counter;
};

/* Writes UUID_LEN characters, no NUL. NOW_MS: the wall clock. */
void uuid_write(struct uuid_source *source, int64_t now_ms, char *to);

#endif
