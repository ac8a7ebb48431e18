/* base/der.h - elements of ASN.1 in their distinguished encoding (X.690), written from the last byte to the
 * first: so what is inside is there before its length is said.
 *
 *     unsigned char *end = der.at;
 *     der_add(&der, text, len);
 *     der_wrap(&der, end, DER_UTF8);      all from der.at to END is the content of one element */
#ifndef BASE_DER_H
#define BASE_DER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DER_BYTES_MAX = 32 * 1024,

    DER_BOOLEAN   = 0x01,
    DER_INTEGER   = 0x02,
    DER_BITS      = 0x03,
    DER_OCTETS    = 0x04,
    DER_OID       = 0x06,
    DER_UTF8      = 0x0c,
    DER_TIME      = 0x17, /* the year in two digits: to 2049 */
    DER_LONG_TIME = 0x18,
    DER_SEQUENCE  = 0x30,
    DER_SET       = 0x31,
    DER_CHOICE    = 0x80, /* | n: [n] with a content that is no element */
    DER_CHOICE_OF = 0xa0, /* | n: [n] around elements */
};

struct der {
    unsigned char *at; /* what was written goes from here to the end of `bytes` */
    bool           failed;
    unsigned char  bytes[DER_BYTES_MAX];
};

void   der_init(struct der *der);
size_t der_len(const struct der *der);

/* In front of what is there. Without room: `failed`, look once at the end. */
void der_add(struct der *der, const void *bytes, size_t len);
void der_wrap(struct der *der, const unsigned char *end, unsigned char tag);
/* Both: an element with this content. */
void der_add_element(struct der *der, unsigned char tag, const void *bytes, size_t len);

#endif
