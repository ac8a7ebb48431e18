/* base/crypto_key.h - signatures of key pairs, as JSON Web Tokens have them (RFC 7518): RSA with
 * PKCS #1 v1.5, and ECDSA as the two numbers side by side. Keys are PEM.
 *
 * A signature costs about a millisecond or more: on a thread of the pool, not on the loop. */
#ifndef BASE_CRYPTO_KEY_H
#define BASE_CRYPTO_KEY_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

struct err;

enum crypto_scheme {
    CRYPTO_RS256,
    CRYPTO_RS384,
    CRYPTO_RS512,
    CRYPTO_ES256, /* on P-256 alone, as the RFC has it; and so on */
    CRYPTO_ES384,
    CRYPTO_ES512, /* P-521 */
};

enum {
    CRYPTO_SIGNATURE_BYTES_MAX = 1024, /* of an RSA key of 8,192 bits */
    CRYPTO_RSA_BITS_MIN        = 2048, /* RFC 7518, 3.3 */
    CRYPTO_PEM_BYTES_MAX       = 16 * 1024,
};

/* OUT holds CRYPTO_SIGNATURE_BYTES_MAX. 0, or ERR_INVALID: PEM is no private key of the scheme's
 * kind. */
int crypto_sign(enum crypto_scheme scheme, struct str pem, struct str bytes, void *out, size_t *len,
                struct err *err) MUST_CHECK;

enum crypto_verdict {
    CRYPTO_GENUINE,
    CRYPTO_FORGED,
    CRYPTO_BAD_KEY, /* ERR says why */
};

/* PEM is a public key; a private one, which contains it, will do. */
enum crypto_verdict crypto_verify(enum crypto_scheme scheme, struct str pem, struct str bytes,
                                  struct str signature, struct err *err) MUST_CHECK;

#endif
