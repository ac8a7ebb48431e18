#include "base/crypto.h"

#include <stdio.h>
#include <stdlib.h>

#include <mbedtls/md.h>

/* The md layer is the part of mbedTLS that has the same names in 2.28 and 3.6. */
static const mbedtls_md_info_t *info_of(enum crypto_hash hash)
{
    switch (hash) {
    case CRYPTO_MD5: return mbedtls_md_info_from_type(MBEDTLS_MD_MD5);
    case CRYPTO_SHA1: return mbedtls_md_info_from_type(MBEDTLS_MD_SHA1);
    case CRYPTO_SHA256: return mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);
    case CRYPTO_SHA384: return mbedtls_md_info_from_type(MBEDTLS_MD_SHA384);
    case CRYPTO_SHA512: return mbedtls_md_info_from_type(MBEDTLS_MD_SHA512);
    }
    return NULL;
}

/* With a known hash and its own context a call fails only when memory is out (HMAC allocates its
 * pads). No caller could go on without the digest, so nobody is asked to look. */
static void must(int rc)
{
    if (rc != 0) {
        fprintf(stderr, "srv: mbedtls: error -0x%04x\n", (unsigned)-rc);
        abort();
    }
}

static const unsigned char *bytes_of(struct str s)
{
    return (const unsigned char *)(s.len ? s.at : "");
}

size_t crypto_digest_bytes(enum crypto_hash hash)
{
    return mbedtls_md_get_size(info_of(hash));
}

void crypto_digest(enum crypto_hash hash, struct str bytes, void *out)
{
    must(mbedtls_md(info_of(hash), bytes_of(bytes), bytes.len, out));
}

void crypto_hmac(enum crypto_hash hash, struct str key, struct str bytes, void *out)
{
    must(mbedtls_md_hmac(info_of(hash), bytes_of(key), key.len, bytes_of(bytes), bytes.len, out));
}

bool crypto_equal(struct str a, struct str b)
{
    volatile unsigned char differing = 0;

    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        differing |= (unsigned char)(a.at[i] ^ b.at[i]);
    return differing == 0;
}
