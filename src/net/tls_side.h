/* net/tls_side.h - what the sessions of one server, or of one client, share. Private to net/tls_*. */
#ifndef NET_TLS_SIDE_H
#define NET_TLS_SIDE_H

#include <stdbool.h>

#include <mbedtls/ssl.h>

#include "base/compiler.h"
#include "net/tls.h"

struct err;
struct tls_session;
struct tls_side;

struct tls_side_ops {
    void (*free)(struct tls_side *side);
    /* What has to be there before a handshake costs anything: 0, or an error of mbedTLS, or that it
     * wants to read. NULL: nothing has to. */
    int (*wait)(struct tls_side *side, struct tls_session *session);
    /* Before the first step of a handshake. 0, or an error of mbedTLS. */
    int (*prepare)(struct tls_side *side, struct tls_session *session);
    /* After the last. False: it is refused, the session's `fault` says why. */
    bool (*accept)(struct tls_side *side, struct tls_session *session);
    /* TLS 1.3, of a client: a ticket has come. */
    void (*remember)(struct tls_side *side, struct tls_session *session);
};

/* Inside its owner. */
struct tls_side {
    const struct tls_side_ops *ops;
    struct tls                *tls; /* borrowed */
    mbedtls_ssl_config         conf;
    unsigned                   refs;                   /* its maker's, and one of each session */
    char                      *alpn[TLS_ALPN_MAX + 1]; /* owned; mbedTLS borrows the list */
};

/* Starts with one reference. ENDPOINT is mbedTLS'. To be ended by tls_side_fini() also after an error. */
int  tls_side_init(struct tls_side *side, const struct tls_side_ops *ops, struct tls *tls,
                   int endpoint, const char *const *alpn, struct err *err) MUST_CHECK;
void tls_side_fini(struct tls_side *side);

void tls_side_drop(struct tls_side *side); /* one reference; with the last it is freed */

#endif
