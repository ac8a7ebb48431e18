/* base/crypto_seal.h - encryption that also proves who wrote it: AES-256-GCM under any secret.
 *
 * What is sealed says how to open it:
 *
 *     version 1 (1 byte)   salt (24)   the text, encrypted   tag (16)
 *
 * Key and nonce of each text come from the secret and its random salt by HKDF-SHA-256 (RFC 5869),
 * so one secret may seal any number of texts: 192 random bits do not meet, where GCM's own nonce of
 * 96 would after 2^32 texts. Any thread. */
#ifndef BASE_CRYPTO_SEAL_H
#define BASE_CRYPTO_SEAL_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

enum {
    CRYPTO_SECRET_BYTES_MIN = 32, /* of a secret; HKDF makes keys, not strength */
    CRYPTO_SEAL_BYTES       = 41, /* what sealing adds */
};

/* OUT holds text.len + CRYPTO_SEAL_BYTES. AAD is proved, too, but not in what comes out; it may be
 * empty. 0, or ERR_MEMORY. */
int crypto_seal(struct str secret, struct str text, struct str aad, void *out) MUST_CHECK;

/* OUT holds sealed.len - CRYPTO_SEAL_BYTES, if that is any. ERR_INVALID: not made by crypto_seal()
 * with this secret and this AAD, or changed since; nothing of OUT may be used. */
int crypto_unseal(struct str secret, struct str sealed, struct str aad, void *out) MUST_CHECK;

/* RFC 5869 with SHA-256. LEN is at most 8,160. */
void crypto_hkdf(struct str secret, struct str salt, struct str info, void *out, size_t len);

#endif
