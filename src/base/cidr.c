#include "base/cidr.h"

#include <arpa/inet.h>
#include <string.h>

static const unsigned char V4_PREFIX[12] = { [10] = 0xff, [11] = 0xff };

bool ip_parse(struct ip *out, struct str text)
{
    char in[CIDR_TEXT_BYTES];

    if (!text.len || text.len >= sizeof(in) || memchr(text.at, '\0', text.len))
        return false;
    memcpy(in, text.at, text.len);
    in[text.len] = '\0';
    if (inet_pton(AF_INET, in, out->bytes + sizeof(V4_PREFIX)) == 1) {
        memcpy(out->bytes, V4_PREFIX, sizeof(V4_PREFIX));
        return true;
    }
    return inet_pton(AF_INET6, in, out->bytes) == 1;
}

bool ip_is_v4(const struct ip *ip)
{
    return memcmp(ip->bytes, V4_PREFIX, sizeof(V4_PREFIX)) == 0;
}

const char *ip_format(const struct ip *ip, char to[CIDR_TEXT_BYTES])
{
    if (ip_is_v4(ip))
        return inet_ntop(AF_INET, ip->bytes + sizeof(V4_PREFIX), to, CIDR_TEXT_BYTES);
    return inet_ntop(AF_INET6, ip->bytes, to, CIDR_TEXT_BYTES);
}

struct cidr cidr_around(const struct ip *ip, unsigned bits)
{
    struct cidr cidr = { .bits = bits };

    memcpy(cidr.ip.bytes, ip->bytes, bits / 8);
    if (bits % 8)
        cidr.ip.bytes[bits / 8] = (unsigned char)(ip->bytes[bits / 8] & (0xff00u >> bits % 8));
    return cidr;
}

/* The dots of an IPv4 network mean that its bits count from there. */
static bool read_bits(unsigned *bits, struct str text, bool dotted)
{
    unsigned max = dotted ? CIDR_BITS - CIDR_IPV4_BITS : CIDR_BITS;
    uint64_t given;

    if (!str_to_u64(text, max, &given))
        return false;
    *bits = (unsigned)given + (dotted ? CIDR_IPV4_BITS : 0);
    return true;
}

bool cidr_parse(struct cidr *out, struct str text)
{
    size_t     slash   = str_find(text, '/');
    struct str address = str_make(text.at, slash);
    bool       dotted  = str_find(address, ':') == address.len;
    unsigned   bits    = CIDR_BITS;
    struct ip  ip;

    if (!ip_parse(&ip, address))
        return false;
    if (slash < text.len && !read_bits(&bits, str_from(text, slash + 1), dotted))
        return false;
    *out = cidr_around(&ip, bits);
    return true;
}

bool cidr_has(const struct cidr *cidr, const struct ip *ip)
{
    struct cidr around = cidr_around(ip, cidr->bits);

    return memcmp(around.ip.bytes, cidr->ip.bytes, sizeof(around.ip.bytes)) == 0;
}
