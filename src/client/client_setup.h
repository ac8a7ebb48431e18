/* client/client_setup.h - what lies between a connected socket and the first request on it: a tunnel through a
 * proxy (RFC 9110, 9.3.6), the handshake of TLS. */
#ifndef CLIENT_CLIENT_SETUP_H
#define CLIENT_CLIENT_SETUP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "client/client_tls.h"
#include "http/h1_gate.h"

struct stream;

enum { CLIENT_SETUP_HEAD_MAX = 16 * 1024 /* of a proxy's answer */ };

struct client_setup {
    /* Set before the start; what they point to stays until done() or the stop. */
    struct stream           *stream;
    struct loop             *loop;
    struct tls_clients      *clients;
    struct str               tunnel;   /* the head that opens it; empty: none */
    const struct client_tls *tls;      /* NULL: none */
    struct str               key;      /* sessions are taken up again under it */
    uint64_t                 limit_ms; /* for all of it; 0: none */
    /* From the loop's turn, once. */
    void (*done)(struct client_setup *setup);

    /* Then: why it came to nothing, `tls`, `timeout`, `refused`, `closed` or `bad_response`; NULL: well. */
    const char *fault;
    struct err  err;
    bool        is_h2; /* agreed upon */

    /* Private. */
    struct timer        limit;
    struct later        report;
    struct h1_head_gate gate;
    struct buf          answer;
    size_t              sent; /* of `tunnel` */
    bool                is_over, is_shaking;
};

/* Nothing to be done: no call of these. */
bool client_setup_is_needed(struct str tunnel, const struct client_tls *tls);

/* Zeroed memory with the fields set that are named above. */
void client_setup_start(struct client_setup *setup);
void client_setup_on_event(struct client_setup *setup); /* the stream's, until done() */
void client_setup_stop(struct client_setup *setup);     /* no done() comes any more; idempotent */

#endif
