/* net/tls_fault.h - why a TLS connection has failed, in plain words. Private to net/tls_*. */
#ifndef NET_TLS_FAULT_H
#define NET_TLS_FAULT_H

#include <mbedtls/ssl.h>

#include "base/compiler.h"
#include "net/tls.h"

struct tls_trouble {
    enum tls_failure kind;
    char            *text; /* owned; NULL while well, or without memory */
};

/* The first one stands. */
void tls_fault_set(struct tls_trouble *fault, enum tls_failure kind, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* What error RC of mbedTLS means in SSL. */
void tls_fault_from(struct tls_trouble *fault, const mbedtls_ssl_context *ssl, int rc);
void tls_fault_fini(struct tls_trouble *fault);

#endif
