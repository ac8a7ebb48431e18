#include "base/der.h"

#include <string.h>

void der_init(struct der *der)
{
    der->at     = der->bytes + sizeof(der->bytes);
    der->failed = false;
}

size_t der_len(const struct der *der)
{
    return (size_t)(der->bytes + sizeof(der->bytes) - der->at);
}

void der_add(struct der *der, const void *bytes, size_t len)
{
    if (der->failed || (size_t)(der->at - der->bytes) < len) {
        der->failed = true;
        return;
    }
    der->at -= len;
    if (len)
        memcpy(der->at, bytes, len);
}

static void add_byte(struct der *der, unsigned char byte)
{
    der_add(der, &byte, 1);
}

/* X.690, 8.1.3: below 128 in one byte, else its bytes behind their number. */
static void add_length(struct der *der, size_t len)
{
    unsigned char count = 0;

    if (len < 0x80) {
        add_byte(der, (unsigned char)len);
        return;
    }
    for (; len; len >>= 8, count++)
        add_byte(der, (unsigned char)len);
    add_byte(der, 0x80 | count);
}

void der_wrap(struct der *der, const unsigned char *end, unsigned char tag)
{
    add_length(der, (size_t)(end - der->at));
    add_byte(der, tag);
}

void der_add_element(struct der *der, unsigned char tag, const void *bytes, size_t len)
{
    const unsigned char *end = der->at;

    der_add(der, bytes, len);
    der_wrap(der, end, tag);
}
