/* net/addr.h - where a socket is bound, or who is at its other end: IPv4, IPv6 or a Unix path.
 *
 * 24 bytes, so that each connection can keep its peer's. Names are not looked up here. */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct err;

enum {
    /* "unix:" and the longest path, or the longest "[address%interface]:port", with a NUL. */
    ADDR_TEXT_BYTES = 128,
};

struct addr {
    sa_family_t family; /* AF_UNSPEC (nothing), AF_INET, AF_INET6 or AF_UNIX */
    uint16_t    port;   /* host byte order; 0 for AF_UNIX */
    uint32_t    scope;  /* interface of a link-local IPv6 address, else 0 */
    union {
        struct in_addr  v4;
        struct in6_addr v6;
        const char     *path; /* borrowed; "@name" is an abstract one; NULL: an unnamed peer */
    } at;
};

/* "127.0.0.1:8080", "[::1]:80", "localhost:80", "unix:/run/x.sock", "unix:@abstract". A path is
 * kept as a pointer into TEXT. 0 or ERR_INVALID. */
int addr_parse(struct addr *out, const char *text, struct err *err);
/* HOST is "127.0.0.1", "::1", "[::1]" or "localhost", which is 127.0.0.1. */
int addr_parse_host(struct addr *out, const char *host, uint16_t port, struct err *err);
/* PATH is borrowed. ERR_INVALID when it is empty, ERR_TOO_LARGE when the kernel cannot take it. */
int addr_parse_path(struct addr *out, const char *path, struct err *err);

/* What addr_parse() reads; "unix:" alone for an unnamed peer. Returns TO. */
const char *addr_format(const struct addr *addr, char to[ADDR_TEXT_BYTES]);
/* Without port and brackets, as logs and forwarding headers have it; "unix" for AF_UNIX. */
const char *addr_format_host(const struct addr *addr, char to[ADDR_TEXT_BYTES]);

/* Returns the length for bind() and connect(). */
socklen_t addr_to_sockaddr(const struct addr *addr, struct sockaddr_storage *to);
/* IPv4 mapped into IPv6 becomes IPv4, so one client has one address on whichever socket it came.
 * A Unix path is not kept: at.path is NULL. */
void addr_from_sockaddr(struct addr *out, const struct sockaddr *from, socklen_t len);

bool addr_is_equal(const struct addr *a, const struct addr *b);

#endif
