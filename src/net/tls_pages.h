/* net/tls_pages.h - what an idle connection's record buffers take is given back.
 *
 * mbedTLS holds two buffers of 16.7 KB for each connection, as long as it lives. While nothing is
 * half-read or half-written their inside says nothing, and the pages there are the kernel's again
 * until the next record: 34 KB become 11. A drop costs 3 us, so it waits until a connection has been
 * idle for TLS_DROP_MS. */
#ifndef NET_TLS_PAGES_H
#define NET_TLS_PAGES_H

#include <mbedtls/ssl.h>

#include "ev/timer.h"

struct tls_pages {
    struct limit         limit;
    mbedtls_ssl_context *ssl;
};

/* SSL is in its owner's memory. */
void tls_pages_init(struct tls_pages *pages, mbedtls_ssl_context *ssl);
/* A limit_fn: nothing has happened for a while. */
void tls_pages_on_idle(struct limit *limit);

#endif
