/* base/buf.h - a growing run of bytes with a stated maximum.
 *
 * Nothing is allocated until the first byte. Appending past the maximum, or without memory,
 * sets `failed` and leaves what was there: write a whole message, then look once. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct buf {
    char  *at;   /* owned */
    size_t len;  /* bytes in use */
    size_t room; /* bytes allocated */
    size_t bytes_max;
    bool   failed; /* an append did not fit; cleared by buf_clear() */
};

void buf_init(struct buf *b, size_t bytes_max);
void buf_fini(struct buf *b);

/* Makes sure that BYTES more fit. False: `failed` is set. */
bool buf_grow(struct buf *b, size_t bytes);

/* Room for BYTES more; the caller writes there and adds to `len`. NULL: does not fit. */
static inline char *buf_reserve(struct buf *b, size_t bytes)
{
    if (unlikely(b->room - b->len < bytes) && !buf_grow(b, bytes))
        return NULL;
    return (char *)((uintptr_t)b->at + b->len); /* NULL + 0, for no bytes, is undefined in C11 */
}

static inline void buf_add(struct buf *b, const void *bytes, size_t len)
{
    char *to = buf_reserve(b, len);

    if (to && len) {
        memcpy(to, bytes, len);
        b->len += len;
    }
}

static inline void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.at, s.len);
}

static inline void buf_add_byte(struct buf *b, char byte)
{
    char *to = buf_reserve(b, 1);

    if (to) {
        *to = byte;
        b->len++;
    }
}

void buf_add_u64(struct buf *b, uint64_t value);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);

static inline struct str buf_str(const struct buf *b)
{
    return str_make(b->at, b->len);
}

/* Empties it; the memory stays. */
static inline void buf_clear(struct buf *b)
{
    b->len    = 0;
    b->failed = false;
}

/* Drops the first BYTES (at most len); what follows moves to the front. */
void buf_consume(struct buf *b, size_t bytes);

/* Gives memory beyond ROOM_MAX back when the buffer is empty. */
void buf_shrink(struct buf *b, size_t room_max);

#endif
