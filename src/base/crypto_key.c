#include "base/crypto_key.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/asn1.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/version.h>

#include "base/crypto.h"
#include "base/crypto_pk.h"
#include "base/err.h"

struct scheme {
    const char          *name;
    enum crypto_hash     hash;
    mbedtls_md_type_t    md;
    mbedtls_ecp_group_id curve;        /* NONE: RSA */
    size_t               number_bytes; /* of each of ECDSA's two */
};

static const struct scheme SCHEMES[] = {
    [CRYPTO_RS256] = { "RS256", CRYPTO_SHA256, MBEDTLS_MD_SHA256, MBEDTLS_ECP_DP_NONE, 0 },
    [CRYPTO_RS384] = { "RS384", CRYPTO_SHA384, MBEDTLS_MD_SHA384, MBEDTLS_ECP_DP_NONE, 0 },
    [CRYPTO_RS512] = { "RS512", CRYPTO_SHA512, MBEDTLS_MD_SHA512, MBEDTLS_ECP_DP_NONE, 0 },
    [CRYPTO_ES256] = { "ES256", CRYPTO_SHA256, MBEDTLS_MD_SHA256, MBEDTLS_ECP_DP_SECP256R1, 32 },
    [CRYPTO_ES384] = { "ES384", CRYPTO_SHA384, MBEDTLS_MD_SHA384, MBEDTLS_ECP_DP_SECP384R1, 48 },
    [CRYPTO_ES512] = { "ES512", CRYPTO_SHA512, MBEDTLS_MD_SHA512, MBEDTLS_ECP_DP_SECP521R1, 66 },
};

enum { NUMBER_BYTES_MAX = 66, DER_BYTES_MAX = 160 };

static mbedtls_ecp_group_id curve_of(const mbedtls_pk_context *key)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    return mbedtls_pk_ec(*key)->MBEDTLS_PRIVATE(grp).id;
#else
    return mbedtls_pk_ec(*key)->grp.id;
#endif
}

_Static_assert(MBEDTLS_PK_SIGNATURE_MAX_SIZE <= CRYPTO_SIGNATURE_BYTES_MAX, "room for any");

/* --- keys ----------------------------------------------------------------------------------------- */

/* mbedTLS wants the NUL to be counted. */
static int parse(mbedtls_pk_context *key, struct str pem, bool is_private)
{
    unsigned char text[CRYPTO_PEM_BYTES_MAX + 1];
    int           rc = -1;

    if (pem.len == 0 || pem.len > CRYPTO_PEM_BYTES_MAX)
        return -1;
    memcpy(text, pem.at, pem.len);
    text[pem.len] = 0;
    if (!is_private)
        rc = mbedtls_pk_parse_public_key(key, text, pem.len + 1);
    if (rc != 0)
        rc = crypto_pk_parse(key, text, pem.len + 1);
    mbedtls_platform_zeroize(text, sizeof(text));
    return rc;
}

static int check_kind(const mbedtls_pk_context *key, const struct scheme *scheme, struct err *err)
{
    if (scheme->curve == MBEDTLS_ECP_DP_NONE) {
        size_t bits = mbedtls_pk_get_bitlen(key);

        if (!mbedtls_pk_can_do(key, MBEDTLS_PK_RSA))
            return err_set(err, ERR_INVALID, "%s wants an RSA key", scheme->name);
        if (bits < CRYPTO_RSA_BITS_MIN || bits > CRYPTO_SIGNATURE_BYTES_MAX * 8)
            return err_set(err, ERR_INVALID, "%s wants an RSA key of 2048 to 8192 bits, not %zu",
                           scheme->name, bits);
        return 0;
    }
    if (!mbedtls_pk_can_do(key, MBEDTLS_PK_ECDSA) || curve_of(key) != scheme->curve)
        return err_set(err, ERR_INVALID, "%s wants a key on the curve P-%d", scheme->name,
                       scheme->number_bytes == 66 ? 521 : (int)scheme->number_bytes * 8);
    return 0;
}

/* The key is to be freed also after an error. */
static int open_key(mbedtls_pk_context *key, const struct scheme *scheme, struct str pem,
                    bool is_private, struct err *err)
{
    mbedtls_pk_init(key);
    if (parse(key, pem, is_private) != 0)
        return err_set(err, ERR_INVALID, "the key is no %s key in PEM without a password",
                       is_private ? "private" : "public");
    return check_kind(key, scheme, err);
}

/* --- ECDSA's two numbers: DER in the library, side by side in a token (RFC 7518, 3.4) ---------------- */

static int write_number(unsigned char **at, const unsigned char *end, unsigned char *to, size_t len)
{
    mbedtls_mpi number;
    int         rc;

    mbedtls_mpi_init(&number);
    rc = mbedtls_asn1_get_mpi(at, end, &number);
    if (rc == 0)
        rc = mbedtls_mpi_write_binary(&number, to, len);
    mbedtls_mpi_free(&number);
    return rc;
}

static int from_der(unsigned char *der, size_t der_len, unsigned char *out, size_t number_bytes)
{
    unsigned char       *at  = der;
    const unsigned char *end = der + der_len;
    size_t               len;
    int rc = mbedtls_asn1_get_tag(&at, end, &len, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);

    if (rc == 0)
        rc = write_number(&at, end, out, number_bytes);
    if (rc == 0)
        rc = write_number(&at, end, out + number_bytes, number_bytes);
    return rc;
}

/* In front of *AT; the number of bytes, or less than 0. */
static int prepend_number(unsigned char **at, unsigned char *start, const char *bytes, size_t len)
{
    mbedtls_mpi number;
    int         rc;

    mbedtls_mpi_init(&number);
    rc = mbedtls_mpi_read_binary(&number, (const unsigned char *)bytes, len);
    if (rc == 0)
        rc = mbedtls_asn1_write_mpi(at, start, &number);
    mbedtls_mpi_free(&number);
    return rc;
}

/* Fills DER from its end; *AT is where it begins. */
static int to_der(unsigned char *der, unsigned char **at, struct str signature, size_t number_bytes)
{
    int second, first, length;

    *at    = der + DER_BYTES_MAX;
    second = prepend_number(at, der, signature.at + number_bytes, number_bytes);
    if (second < 0)
        return second;
    first = prepend_number(at, der, signature.at, number_bytes);
    if (first < 0)
        return first;
    length = mbedtls_asn1_write_len(at, der, (size_t)(first + second));
    if (length < 0)
        return length;
    return mbedtls_asn1_write_tag(at, der, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
}

/* --- signing and verifying -------------------------------------------------------------------------- */

static int sign(mbedtls_pk_context *key, const struct scheme *scheme, struct str bytes,
                unsigned char *out, size_t *len)
{
    unsigned char digest[CRYPTO_DIGEST_BYTES_MAX];
    unsigned char der[CRYPTO_SIGNATURE_BYTES_MAX];
    size_t        der_len;
    bool          is_rsa = scheme->curve == MBEDTLS_ECP_DP_NONE;
    int           rc;

    crypto_digest(scheme->hash, bytes, digest);
    rc = crypto_pk_sign(key, scheme->md, digest, crypto_digest_bytes(scheme->hash),
                        is_rsa ? out : der, CRYPTO_SIGNATURE_BYTES_MAX, is_rsa ? len : &der_len);
    if (rc != 0 || is_rsa)
        return rc;
    *len = 2 * scheme->number_bytes;
    return from_der(der, der_len, out, scheme->number_bytes);
}

int crypto_sign(enum crypto_scheme which, struct str pem, struct str bytes, void *out, size_t *len,
                struct err *err)
{
    const struct scheme *scheme = &SCHEMES[which];
    mbedtls_pk_context   key;
    int                  rc = open_key(&key, scheme, pem, true, err);

    if (rc == 0 && sign(&key, scheme, bytes, out, len) != 0)
        rc = err_set(err, ERR_INVALID, "the key is broken: nothing can be signed with it");
    mbedtls_pk_free(&key);
    return rc;
}

static bool is_genuine(mbedtls_pk_context *key, const struct scheme *scheme, struct str bytes,
                       struct str signature)
{
    unsigned char        digest[CRYPTO_DIGEST_BYTES_MAX], der[DER_BYTES_MAX];
    const unsigned char *at  = (const unsigned char *)signature.at;
    size_t               len = signature.len;

    if (scheme->curve != MBEDTLS_ECP_DP_NONE) {
        unsigned char *begin;

        if (len != 2 * scheme->number_bytes ||
            to_der(der, &begin, signature, scheme->number_bytes) < 0)
            return false;
        at  = begin;
        len = (size_t)(der + DER_BYTES_MAX - begin);
    }
    crypto_digest(scheme->hash, bytes, digest);
    return mbedtls_pk_verify(key, scheme->md, digest, crypto_digest_bytes(scheme->hash), at, len) ==
           0;
}

enum crypto_verdict crypto_verify(enum crypto_scheme which, struct str pem, struct str bytes,
                                  struct str signature, struct err *err)
{
    const struct scheme *scheme = &SCHEMES[which];
    mbedtls_pk_context   key;
    enum crypto_verdict  verdict = CRYPTO_BAD_KEY;

    if (open_key(&key, scheme, pem, false, err) == 0)
        verdict = is_genuine(&key, scheme, bytes, signature) ? CRYPTO_GENUINE : CRYPTO_FORGED;
    mbedtls_pk_free(&key);
    return verdict;
}
