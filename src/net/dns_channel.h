/* net/dns_channel.h - asks DNS servers for the addresses of a name: c-ares on the loop.
 *
 * Knows no hosts file, no cache and no questions that share an answer: net/dns.c does. What a
 * channel was opened with (servers, search domains) stays as it is; when resolv.conf changes,
 * another channel is opened, and this one closed once nobody waits for it. Belongs to the loop's
 * thread. */
#ifndef NET_DNS_CHANNEL_H
#define NET_DNS_CHANNEL_H

#include <stdint.h>

#include "net/addr.h"

struct dns_channel;
struct err;
struct loop;

enum { DNS_CHANNEL_ADDRS_MAX = 16 };

struct dns_channel_options {
    const char *servers;     /* "127.0.0.1:5353,10.0.0.2"; NULL: those of resolv_path */
    const char *resolv_path; /* servers, search domains, ndots */
    unsigned    timeout_ms;  /* of the first try; each round doubles it */
    unsigned    tries;       /* rounds over all servers */
};

struct dns_answer {
    int         rc;     /* 0, ERR_NOT_FOUND, ERR_TIMEOUT, ERR_SYSTEM, ERR_INVALID, ERR_MEMORY,
                         * ERR_CANCELLED (the channel was closed) */
    const char *reason; /* constant text; NULL when rc is 0 */
    uint32_t    ttl_s;  /* the least of all records that led here; when rc is 0 */
    unsigned    count;
    struct addr addrs[DNS_CHANNEL_ADDRS_MAX]; /* port 0, in the order in which to try them */
};

/* ANSWER is valid during the call only. */
typedef void (*dns_answer_fn)(const struct dns_answer *answer, void *arg);

int dns_channel_open(struct dns_channel **out, struct loop *loop,
                     const struct dns_channel_options *options, struct err *err);
/* Those who ask are told ERR_CANCELLED. Not from within an answer. NULL is fine. */
void dns_channel_close(struct dns_channel *channel);

/* FN is called once, possibly from within. A question cannot be taken back. */
void dns_channel_ask(struct dns_channel *channel, const char *name, dns_answer_fn fn, void *arg);

/* Questions without an answer. */
unsigned dns_channel_open_count(const struct dns_channel *channel);

#endif
