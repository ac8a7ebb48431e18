#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_ROOM = 256 };

void buf_init(struct buf *b, size_t bytes_max)
{
    *b = (struct buf){ .bytes_max = bytes_max };
}

void buf_fini(struct buf *b)
{
    free(b->at);
    b->at  = NULL;
    b->len = b->room = 0;
}

bool buf_grow(struct buf *b, size_t bytes)
{
    size_t room = b->room ? b->room : FIRST_ROOM;
    char  *at;

    if (bytes > b->bytes_max - b->len)
        goto fail;
    while (room - b->len < bytes)
        room *= 2;
    if (room > b->bytes_max)
        room = b->bytes_max;
    at = realloc(b->at, room);
    if (!at)
        goto fail;
    b->at   = at;
    b->room = room;
    return true;

fail:
    b->failed = true;
    return false;
}

void buf_add_u64(struct buf *b, uint64_t value)
{
    char  digits[20];
    char *at = digits + sizeof(digits);

    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    int     len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0 || !buf_reserve(b, (size_t)len + 1))
        return;
    va_start(args, format);
    vsnprintf(b->at + b->len, (size_t)len + 1, format, args);
    va_end(args);
    b->len += (size_t)len;
}

void buf_consume(struct buf *b, size_t bytes)
{
    assert(bytes <= b->len);
    b->len -= bytes;
    if (b->len)
        memmove(b->at, b->at + bytes, b->len);
}

void buf_shrink(struct buf *b, size_t room_max)
{
    if (b->len == 0 && b->room > room_max)
        buf_fini(b);
}
