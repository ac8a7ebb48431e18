/* base/crypto.h - digests and HMAC by mbedTLS (2.28 and 3.6), whose primitives live here and in
 * base/crypto_seal (encryption) and base/crypto_key (signatures of key pairs).
 *
 * Random bytes are base/rand's, TLS is net/tls'. Any thread. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

enum crypto_hash {
    CRYPTO_MD5, /* these two for protocols and files that name them; not for what must hold */
    CRYPTO_SHA1,
    CRYPTO_SHA256,
    CRYPTO_SHA384,
    CRYPTO_SHA512,
};

enum { CRYPTO_DIGEST_BYTES_MAX = 64 };

/* From 16 to 64. */
size_t crypto_digest_bytes(enum crypto_hash hash);

/* Writes crypto_digest_bytes() bytes to OUT. */
void crypto_digest(enum crypto_hash hash, struct str bytes, void *out);

/* RFC 2104. The key may have any length. */
void crypto_hmac(enum crypto_hash hash, struct str key, struct str bytes, void *out);

/* Takes the same time whatever the bytes are, so that a client cannot feel its way to a secret.
 * The lengths are no secret. */
bool crypto_equal(struct str a, struct str b);

#endif
