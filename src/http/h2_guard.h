/* http/h2_guard.h - how much of what brings no request forward one HTTP/2 connection may say.
 *
 * The floods of HTTP/2 are made of frames that any client may send: a reset, a ping, an empty piece
 * of a body. Each takes one from the connection's bucket, which fills again slowly; who has emptied
 * it is told to calm down and goes. Pings and windows that follow what we have sent are free, since
 * clients measure and read by them. Knows no nghttp2. */
#ifndef HTTP_H2_GUARD_H
#define HTTP_H2_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    H2_GUARD_BURST      = 1000,
    H2_GUARD_PER_SECOND = 33,
    H2_GUARD_FREE_MAX   = 1000, /* earned and not used */
    H2_CRUMB_BYTES      = 128,  /* a window that lets out less is one */
};

enum h2_nuisance {
    H2_RESET,    /* the client gave a stream up (CVE-2023-44487) */
    H2_BROKEN,   /* the client broke a rule, and we gave the stream up (CVE-2025-8671) */
    H2_PING,     /* wants an answer (CVE-2019-9512) */
    H2_SETTINGS, /* so does this (CVE-2019-9515) */
    H2_EMPTY,    /* DATA without data or end (CVE-2019-9518) */
    H2_PRIORITY, /* (CVE-2019-9513) */
    H2_WINDOW,   /* WINDOW_UPDATE */
    H2_CRUMB,    /* DATA of ours as small as the client's window (CVE-2019-9511) */
    H2_FRAGMENT, /* CONTINUATION (CVE-2024-28182) */
};

/* Zeroed memory plus h2_guard_init(). */
struct h2_guard {
    uint64_t    since_ms;    /* when the bucket was last filled */
    uint32_t    thousandths; /* of what it holds */
    uint32_t    free;        /* pings and windows that cost nothing */
    const char *why;         /* set once it was empty: a fixed phrase */
};

void h2_guard_init(struct h2_guard *guard, uint64_t now_ms);

/* A frame of ours went out that a client may answer by a window or a ping. */
static inline void h2_guard_earn(struct h2_guard *guard)
{
    if (guard->free < H2_GUARD_FREE_MAX)
        guard->free += 2; /* the stream's window and the connection's */
}

/* False: it is too much; guard->why says of what. */
bool h2_guard_spend(struct h2_guard *guard, enum h2_nuisance nuisance, uint64_t now_ms);

#endif
