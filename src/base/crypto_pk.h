/* base/crypto_pk.h - key pairs of mbedTLS, where 2.28 and 3.6 differ: read, asked for signatures. For files
 * that name mbedTLS themselves. Functions return 0, or an error of mbedTLS. */
#ifndef BASE_CRYPTO_PK_H
#define BASE_CRYPTO_PK_H

#include <stddef.h>

#include <mbedtls/md.h>
#include <mbedtls/pk.h>

/* The random bytes of mbedTLS' callbacks are base/rand's. ARG is not looked at. */
int crypto_pk_random(void *arg, unsigned char *to, size_t len);

/* A private key without a password. PEM ends in NUL, which LEN counts. */
int crypto_pk_parse(mbedtls_pk_context *key, const unsigned char *pem, size_t len);
int crypto_pk_check_pair(const mbedtls_pk_context *public_key,
                         const mbedtls_pk_context *private_key);

/* For a private key that signs often, by one thread: what is computed of its curve for the first
 * signature is kept with it. Its pair is checked before. */
int crypto_pk_keep(mbedtls_pk_context *key);

/* TO has room for any signature of KEY: 2.28 does not look at ROOM. *LEN is the signature's length. */
int crypto_pk_sign(mbedtls_pk_context *key, mbedtls_md_type_t md, const unsigned char *digest,
                   size_t digest_len, unsigned char *to, size_t room, size_t *len);

#endif
