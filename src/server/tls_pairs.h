/* server/tls_pairs.h - the setting `tls` of config.lua: certificates and their keys in pairs, which
 * flags and variables have as two lists. */
#ifndef SERVER_TLS_PAIRS_H
#define SERVER_TLS_PAIRS_H

#include "base/str.h"

struct err;

enum { TLS_PAIRS_BYTES_MAX = 64 * 1024 };

struct tls_pairs {
    char certs[TLS_PAIRS_BYTES_MAX]; /* "a.pem,b.pem" */
    char keys
        [TLS_PAIRS_BYTES_MAX]; /* one for each: a pair without one has its key in the same file */
};

/* TEXT is as bind/lconfig.h has it: "cert=a.pem key=a.key,b.pem b.key". 0 or ERR_INVALID. */
int tls_pairs_read(struct tls_pairs *out, struct str text, struct err *err);

#endif
