/* net/dial.h - to a connected socket by name: resolves, then races the addresses (RFC 8305: the next
 * one is tried as well after 250 ms, or at once when one has failed), within one time limit.
 * Belongs to the loop's thread. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/addr.h"
#include "net/dns.h"

struct dial;

enum { DIAL_RACERS_MAX = 4, DIAL_NEXT_MS = 250 };

struct dial_target {
    struct str  host; /* a name or an address; ignored with `path` */
    uint16_t    port;
    const char *path;       /* a Unix socket ("@name": an abstract one), or NULL */
    uint64_t    timeout_ms; /* for resolving and connecting together; 0: none */
};

struct dial_racer {
    struct io          io;
    struct dial       *dial;
    const struct addr *addr; /* of the question: where it goes */
    int                fd;   /* -1: none */
};

/* In its owner's memory. */
struct dial {
    struct loop      *loop;
    struct dns_query  query;
    struct dial_racer racers[DIAL_RACERS_MAX];
    unsigned          next; /* address to be tried next */
    struct timer      stagger;
    struct timer      limit;
    struct later      report;
    char              name[DNS_NAME_BYTES_MAX + 1]; /* for messages */
    bool              running;

    /* Called once, from the loop's turn, unless dial_cancel() came first. May free the dial. */
    void (*done)(struct dial *dial);

    /* When done() runs: FD >= 0 is connected, non-blocking, close-on-exec and the callee's; else RC
     * is ERR_TIMEOUT, ERR_NOT_FOUND (the name), ERR_CLOSED (refused or reset), ERR_SYSTEM or
     * ERR_INVALID, and err.text says what was tried. */
    int         fd;
    int         rc;
    struct err  err;
    struct addr peer;
};

/* Zeroed memory with `done` set. TARGET's texts are copied, but for a path (borrowed until done). Never calls
 * done() from within. TCP_NODELAY is set. */
void dial_start(struct dial *dial, struct dns *dns, struct loop *loop,
                const struct dial_target *target);
void dial_cancel(struct dial *dial); /* closes what was begun; idempotent */

#endif
