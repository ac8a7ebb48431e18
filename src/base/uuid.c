#include "base/uuid.h"

#include "base/rand.h"

enum {
    COUNTER_MAX  = 0xfff,
    COUNTER_SEED = 0x7ff, /* a fresh one leaves at least half of its values */
};

/* A counter that is used up borrows the next millisecond. */
static void advance(struct uuid_source *source, uint64_t now_ms)
{
    if (now_ms <= source->ms && source->counter < COUNTER_MAX) {
        source->counter++;
        return;
    }
    source->ms = now_ms > source->ms ? now_ms : source->ms + 1;
    rand_bytes(&source->counter, sizeof(source->counter));
    source->counter &= COUNTER_SEED;
}

static void fill(const struct uuid_source *source, unsigned char *bytes)
{
    rand_bytes(bytes + 8, 8);
    for (int i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(source->ms >> (40 - 8 * i));
    bytes[6] = (unsigned char)(0x70 | source->counter >> 8);
    bytes[7] = (unsigned char)source->counter;
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
}

void uuid_write(struct uuid_source *source, int64_t now_ms, char *to)
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char     bytes[16];

    advance(source, now_ms > 0 ? (uint64_t)now_ms : 0);
    fill(source, bytes);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = DIGITS[bytes[i] >> 4];
        *to++ = DIGITS[bytes[i] & 15];
    }
}
