#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <string.h>

static enum proxy_reading bad(struct proxy_header *out, const char *fault)
{
    out->fault = fault;
    return PROXY_BAD;
}

/* By way of the kernel's form: mapped IPv4 becomes IPv4 there. */
static void set_v4(struct proxy_header *out, const void *address, uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

    memcpy(&in.sin_addr, address, sizeof(in.sin_addr));
    addr_from_sockaddr(&out->client, (const struct sockaddr *)&in, sizeof(in));
    out->told = true;
}

static void set_v6(struct proxy_header *out, const void *address, uint16_t port)
{
    struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

    memcpy(&in.sin6_addr, address, sizeof(in.sin6_addr));
    addr_from_sockaddr(&out->client, (const struct sockaddr *)&in, sizeof(in));
    out->told = true;
}

/* --- version 1: "PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n" ---------------------------------------- */

static const struct str V1_START = STR_INIT("PROXY ");

/* Cuts a word off *REST. Exactly one blank stands between two, so that an empty word is a fault for
 * whoever reads it. */
static struct str next_word(struct str *rest)
{
    size_t     end  = str_find(*rest, ' ');
    struct str word = str_make(rest->at, end);

    *rest = end < rest->len ? str_from(*rest, end + 1) : STR_NONE;
    return word;
}

/* FAMILY's address in the form of the network; OUT has room for either. */
static bool read_address(void *out, int family, struct str word)
{
    char text[INET6_ADDRSTRLEN];

    if (word.len == 0 || word.len >= sizeof(text) || memchr(word.at, '\0', word.len))
        return false;
    memcpy(text, word.at, word.len);
    text[word.len] = '\0';
    return inet_pton(family, text, out) == 1;
}

static bool read_port(uint16_t *out, struct str word)
{
    uint64_t port;

    if (word.len == 0 || (word.len > 1 && word.at[0] == '0') ||
        !str_to_u64(word, UINT16_MAX, &port))
        return false;
    *out = (uint16_t)port;
    return true;
}

static bool read_endpoints(struct proxy_header *out, int family, struct str rest)
{
    struct in6_addr source, target; /* room for either family */
    uint16_t        source_port, target_port;

    if (!read_address(&source, family, next_word(&rest)) ||
        !read_address(&target, family, next_word(&rest)) ||
        !read_port(&source_port, next_word(&rest)) || !read_port(&target_port, rest))
        return false;
    if (family == AF_INET)
        set_v4(out, &source, source_port);
    else
        set_v6(out, &source, source_port);
    return true;
}

/* LINE is without its CRLF and begins behind V1_START. */
static bool read_line(struct proxy_header *out, struct str line)
{
    struct str protocol = next_word(&line);

    if (str_is(protocol, STR("UNKNOWN")))
        return true; /* whatever follows is to be ignored */
    if (str_is(protocol, STR("TCP4")))
        return read_endpoints(out, AF_INET, line);
    return str_is(protocol, STR("TCP6")) && read_endpoints(out, AF_INET6, line);
}

/* Where the line ends, its CRLF not counted. A CR or LF alone ends none. */
static enum proxy_reading find_line_end(struct str bytes, size_t *end)
{
    struct str line = str_make(
        bytes.at, bytes.len < PROXY_HEADER_V1_BYTES_MAX ? bytes.len : PROXY_HEADER_V1_BYTES_MAX);

    *end = str_find(line, '\r');
    if (str_find(line, '\n') < *end)
        return PROXY_BAD;
    if (*end + 1 < line.len)
        return line.at[*end + 1] == '\n' ? PROXY_DONE : PROXY_BAD;
    return line.len == PROXY_HEADER_V1_BYTES_MAX ? PROXY_BAD : PROXY_MORE;
}

static enum proxy_reading read_v1(struct proxy_header *out, struct str bytes)
{
    size_t             end;
    enum proxy_reading found = find_line_end(bytes, &end);

    if (found == PROXY_BAD)
        return bad(out, "its line does not end in CRLF within 107 bytes");
    if (found == PROXY_MORE)
        return PROXY_MORE;
    out->used = end + 2;
    if (!read_line(out, str_from(str_make(bytes.at, end), V1_START.len)))
        return bad(out, "its line is malformed");
    return PROXY_DONE;
}

/* --- version 2 ------------------------------------------------------------------------------------------ */

static const struct str V2_START = STR_INIT("\r\n\r\n\0\r\nQUIT\n");

enum {
    V2_FIXED_BYTES = 16, /* signature, version and command, family and protocol, length */
    V2_LOCAL       = 0x20,
    V2_PROXY       = 0x21,
    FAMILY_INET    = 1,
    FAMILY_INET6   = 2,
    FAMILY_UNIX    = 3,
    PROTOCOL_TCP   = 1,
    PROTOCOL_MAX   = 2, /* datagrams */
    INET_BYTES     = 12,
    INET6_BYTES    = 36,
    UNIX_BYTES     = 216,
};

static uint16_t read_u16(const unsigned char *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static size_t block_bytes(unsigned family)
{
    static const size_t BYTES[] = { 0, INET_BYTES, INET6_BYTES, UNIX_BYTES };

    return BYTES[family];
}

/* Source address, target's, source port, target's. Of a datagram's client nothing is told: no
 * connection can be its. */
static void read_block(struct proxy_header *out, unsigned family, unsigned protocol,
                       const unsigned char *block)
{
    if (protocol != PROTOCOL_TCP)
        return;
    if (family == FAMILY_INET)
        set_v4(out, block, read_u16(block + 8));
    else if (family == FAMILY_INET6)
        set_v6(out, block, read_u16(block + 32));
}

/* The whole header lies in AT. LOCAL: whatever its block says is ignored. */
static enum proxy_reading read_v2_block(struct proxy_header *out, const unsigned char *at)
{
    unsigned family = at[13] >> 4, protocol = at[13] & 0x0f;

    if (at[12] == V2_LOCAL)
        return PROXY_DONE;
    if (family > FAMILY_UNIX || protocol > PROTOCOL_MAX)
        return bad(out, "it names an unknown family or protocol");
    if (out->used - V2_FIXED_BYTES < block_bytes(family))
        return bad(out, "it is too short for its addresses");
    read_block(out, family, protocol, at + V2_FIXED_BYTES);
    return PROXY_DONE;
}

static enum proxy_reading read_v2(struct proxy_header *out, struct str bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;

    if (bytes.len > V2_START.len && at[12] != V2_LOCAL && at[12] != V2_PROXY)
        return bad(out, "it has an unknown version or command");
    if (bytes.len < V2_FIXED_BYTES)
        return PROXY_MORE;
    out->used = V2_FIXED_BYTES + (size_t)read_u16(at + 14);
    if (out->used > PROXY_HEADER_V2_BYTES_MAX)
        return bad(out, "it is longer than 4096 bytes");
    return bytes.len < out->used ? PROXY_MORE : read_v2_block(out, at);
}

/* --- either ---------------------------------------------------------------------------------------------- */

/* As far as BYTES go. */
static bool begins_like(struct str bytes, struct str start)
{
    size_t len = bytes.len < start.len ? bytes.len : start.len;

    return str_is(str_make(bytes.at, len), str_make(start.at, len));
}

enum proxy_reading proxy_header_read(struct proxy_header *out, struct str bytes)
{
    *out = (struct proxy_header){ 0 };
    if (!bytes.len)
        return PROXY_MORE;
    if (begins_like(bytes, V1_START))
        return bytes.len < V1_START.len ? PROXY_MORE : read_v1(out, bytes);
    if (begins_like(bytes, V2_START))
        return read_v2(out, bytes);
    return bad(out, "none came");
}
