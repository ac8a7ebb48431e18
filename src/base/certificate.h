/* base/certificate.h - certificates made here, for development: an authority of one's own and what it
 * signs. Keys are ECDSA on P-256, all of it is PEM (RFC 7468).
 *
 * What is made for others to trust comes from an authority that they trust already. */
#ifndef BASE_CERTIFICATE_H
#define BASE_CERTIFICATE_H

#include <stdbool.h>

#include "base/compiler.h"

struct err;

enum {
    CERTIFICATE_PEM_BYTES_MAX     = 32 * 1024,
    CERTIFICATE_NAMES_MAX         = 64,
    CERTIFICATE_SUBJECT_BYTES_MAX = 64, /* X.520's bound of a common name */
    CERTIFICATE_DAYS_MAX          = 36500,
};

struct certificate {
    char cert[CERTIFICATE_PEM_BYTES_MAX];
    char key[CERTIFICATE_PEM_BYTES_MAX]; /* wipe it after use */
};

struct certificate_spec {
    const char *subject; /* its common name */
    unsigned    days;    /* it holds from yesterday, since clocks differ, for so long from now */
    bool        is_authority;
    /* Of the server: "shop.test", "*.shop.test", "127.0.0.1", "::1". None for an authority. */
    const char *const *names;
    unsigned           name_count;
};

/* Makes a key and its certificate, signed by ISSUER, or by itself where that is NULL. ERR_INVALID: a name
 * is none, or ISSUER no certificate and key. */
int certificate_make(struct certificate *out, const struct certificate_spec *spec,
                     const struct certificate *issuer, struct err *err) MUST_CHECK;

/* Whether NAME may stand in a certificate for servers: a host, with a star for its first label if two
 * others follow, or an address. */
bool certificate_is_name(const char *name);

#endif
