#include "base/crypto_pk.h"

#include <mbedtls/version.h>

#include "base/rand.h"

int crypto_pk_random(void *arg, unsigned char *to, size_t len)
{
    rand_bytes(to, len);
    return 0;
}

#if MBEDTLS_VERSION_NUMBER >= 0x03000000

int crypto_pk_parse(mbedtls_pk_context *key, const unsigned char *pem, size_t len)
{
    return mbedtls_pk_parse_key(key, pem, len, NULL, 0, crypto_pk_random, NULL);
}

int crypto_pk_check_pair(const mbedtls_pk_context *public_key,
                         const mbedtls_pk_context *private_key)
{
    return mbedtls_pk_check_pair(public_key, private_key, crypto_pk_random, NULL);
}

/* The library has the tables of all its curves. */
int crypto_pk_keep(mbedtls_pk_context *key)
{
    return 0;
}

int crypto_pk_sign(mbedtls_pk_context *key, mbedtls_md_type_t md, const unsigned char *digest,
                   size_t digest_len, unsigned char *to, size_t room, size_t *len)
{
    return mbedtls_pk_sign(key, md, digest, digest_len, to, room, len, crypto_pk_random, NULL);
}

#else

int crypto_pk_parse(mbedtls_pk_context *key, const unsigned char *pem, size_t len)
{
    return mbedtls_pk_parse_key(key, pem, len, NULL, 0);
}

int crypto_pk_check_pair(const mbedtls_pk_context *public_key,
                         const mbedtls_pk_context *private_key)
{
    return mbedtls_pk_check_pair(public_key, private_key);
}

/* An EC key signs by a copy of itself that is thrown away with all that was computed, which takes as long as
 * the signature. An ECDSA key signs itself. */
int crypto_pk_keep(mbedtls_pk_context *key)
{
    mbedtls_pk_context kept;
    int                rc;

    if (mbedtls_pk_get_type(key) != MBEDTLS_PK_ECKEY)
        return 0;
    mbedtls_pk_init(&kept);
    rc = mbedtls_pk_setup(&kept, mbedtls_pk_info_from_type(MBEDTLS_PK_ECDSA));
    if (rc == 0)
        rc = mbedtls_ecdsa_from_keypair(mbedtls_pk_ec(kept), mbedtls_pk_ec(*key));
    mbedtls_pk_free(rc == 0 ? key : &kept);
    if (rc == 0)
        *key = kept;
    return rc;
}

int crypto_pk_sign(mbedtls_pk_context *key, mbedtls_md_type_t md, const unsigned char *digest,
                   size_t digest_len, unsigned char *to, size_t room, size_t *len)
{
    return mbedtls_pk_sign(key, md, digest, digest_len, to, len, crypto_pk_random, NULL);
}

#endif
