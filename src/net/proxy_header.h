/* net/proxy_header.h - what a proxy says of its client in front of a connection's first byte: the
 * PROXY protocol, version 1 (a line) and 2 (binary), as haproxy's proxy-protocol.txt has it.
 *
 * A pure function on bytes. Who is believed is the caller's to decide, and that somebody must say
 * it, for the protocol forbids guessing whether a header is there. */
#ifndef NET_PROXY_HEADER_H
#define NET_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "net/addr.h"

enum {
    PROXY_HEADER_V1_BYTES_MAX = 107,  /* its line, CRLF included: section 2.1 */
    PROXY_HEADER_V2_BYTES_MAX = 4096, /* all of it: addresses take 232, the rest are TLVs */
};

enum proxy_reading {
    PROXY_MORE, /* good so far: offer the same bytes with more behind them */
    PROXY_DONE,
    PROXY_BAD, /* see `fault`; nothing of it may be read as anything else */
};

struct proxy_header {
    size_t      used;   /* DONE: bytes of the header; what follows is the connection's own */
    bool        told;   /* false: the proxy speaks for itself, or for what has no address of IP */
    struct addr client; /* if told */
    const char *fault;  /* BAD: a fixed phrase */
};

/* BYTES: all since the connection began. TLVs are skipped. */
enum proxy_reading proxy_header_read(struct proxy_header *out, struct str bytes);

#endif
