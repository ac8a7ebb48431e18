/* base/cidr.h - networks like 10.0.0.0/8 and 2001:db8::/32, and which addresses lie in them.
 *
 * An IPv4 address is kept as it would be mapped into IPv6, so both of its spellings are the same. */
#ifndef BASE_CIDR_H
#define BASE_CIDR_H

#include <stdbool.h>

#include "base/str.h"

enum {
    CIDR_TEXT_BYTES = 64,  /* of any address or network, with a NUL */
    CIDR_IPV4_BITS  = 96,  /* in front of an IPv4 address */
    CIDR_BITS       = 128, /* of an address */
};

struct ip {
    unsigned char bytes[16];
};

/* A network: the first BITS of the address count. */
struct cidr {
    struct ip ip; /* zero behind them */
    unsigned  bits;
};

/* "192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7"; no port, brackets, interface or leading zeros. */
bool ip_parse(struct ip *out, struct str text);
bool ip_is_v4(const struct ip *ip);
/* As short as it can be written; IPv4 with dots. Returns TO. */
const char *ip_format(const struct ip *ip, char to[CIDR_TEXT_BYTES]);

/* An address, which is a network of one, or an address, "/" and its bits; those behind are dropped. */
bool cidr_parse(struct cidr *out, struct str text);
bool cidr_has(const struct cidr *cidr, const struct ip *ip);
/* The network of BITS (of 128) that IP lies in. */
struct cidr cidr_around(const struct ip *ip, unsigned bits);

#endif
