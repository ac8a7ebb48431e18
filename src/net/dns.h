/* net/dns.h - names to addresses by c-ares, one channel for each loop (CORE, decision 16).
 *
 * Answers are as libc's: literal addresses and the hosts file first, search domains, A and AAAA,
 * TCP when an answer is truncated. localhost needs no server. Answers are kept by their TTL,
 * failures for a short while, and both files are read again when they change. All of it belongs to
 * the loop's thread. */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "net/addr.h"

struct dns;
struct loop;

enum { DNS_ADDRS_MAX = 16, DNS_NAME_BYTES_MAX = 255 };

/* Zeroes are the defaults. For tests and for machines with resolvers of their own. */
struct dns_options {
    const char *servers;     /* "127.0.0.1:5353,10.0.0.2"; NULL: resolv.conf's */
    const char *hosts_path;  /* NULL: /etc/hosts */
    const char *resolv_path; /* NULL: /etc/resolv.conf */
    unsigned    timeout_ms;  /* of the first try */
    unsigned    tries;
    unsigned    limit_ms; /* of a lookup in all: then ERR_TIMEOUT */
};

/* Reads no file yet: the first question does. */
int  dns_open(struct dns **out, struct loop *loop, const struct dns_options *options,
              struct err *err);
void dns_close(struct dns *dns); /* no question may be open; NULL is fine */

/* A question; lies in its owner's memory until it is answered or cancelled. */
struct dns_query {
    struct list link; /* private from here */
    struct dns *dns;
    void       *lookup; /* the one that several questions for a name share */
    uint16_t    port;

    /* Called once, from the loop's turn, unless dns_cancel() came first. */
    void (*done)(struct dns_query *query);

    /* Set when done() runs, or dns_resolve() returned true. ADDRS carry the port that was asked
     * for, in the order in which they should be tried: IPv6 and IPv4 in turn. */
    int         rc; /* 0, ERR_NOT_FOUND (no such name), ERR_TIMEOUT, ERR_SYSTEM (no server answers),
                     * ERR_INVALID (no name), ERR_BUSY */
    struct err  err;
    struct addr addrs[DNS_ADDRS_MAX];
    unsigned    count;
};

/* True: answered at once (a literal, localhost, the cache), and done() will not be called. HOST may
 * go after the call; brackets around an IPv6 address are taken off. */
bool dns_resolve(struct dns *dns, struct dns_query *query, struct str host, uint16_t port);
void dns_cancel(struct dns_query *query); /* idempotent; also after the answer */

/* For metrics: questions that wait for a server. */
unsigned dns_pending(const struct dns *dns);

#endif
