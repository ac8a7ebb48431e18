#include "base/crypto_pk.h"

#include <mbedtls/version.h>

#include "support/check.h"

static mbedtls_pk_context key, public_key;

static void make_key(mbedtls_ecp_group_id curve)
{
    unsigned char pem[1024];

    mbedtls_pk_init(&key);
    mbedtls_pk_init(&public_key);
    CHECK_INT(mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)), 0);
    CHECK_INT(mbedtls_ecp_gen_key(curve, mbedtls_pk_ec(key), crypto_pk_random, NULL), 0);
    CHECK_INT(mbedtls_pk_write_pubkey_pem(&key, pem, sizeof(pem)), 0);
    CHECK_INT(mbedtls_pk_parse_public_key(&public_key, pem, strlen((char *)pem) + 1), 0);
}

static void free_keys(void)
{
    mbedtls_pk_free(&key);
    mbedtls_pk_free(&public_key);
}

static void check_signs(void)
{
    static const unsigned char digest[32] = { 1, 2, 3 };
    unsigned char              signature[MBEDTLS_PK_SIGNATURE_MAX_SIZE];
    size_t                     len;

    CHECK_INT(crypto_pk_sign(&key, MBEDTLS_MD_SHA256, digest, sizeof(digest), signature,
                             sizeof(signature), &len),
              0);
    CHECK_INT(
        mbedtls_pk_verify(&public_key, MBEDTLS_MD_SHA256, digest, sizeof(digest), signature, len),
        0);
}

TEST(a_key_that_is_kept_signs_as_it_did)
{
    static const mbedtls_ecp_group_id CURVES[] = { MBEDTLS_ECP_DP_SECP256R1,
                                                   MBEDTLS_ECP_DP_SECP384R1 };

    for (unsigned i = 0; i < 2; i++) {
        make_key(CURVES[i]);
        CHECK_INT(crypto_pk_check_pair(&public_key, &key), 0);
        check_signs();
        CHECK_INT(crypto_pk_keep(&key), 0);
        check_signs();
        check_signs();
        CHECK_INT(crypto_pk_keep(&key), 0);
        check_signs();
        CHECK(mbedtls_pk_can_do(&key, MBEDTLS_PK_ECDSA));
        free_keys();
    }
}

#if MBEDTLS_VERSION_NUMBER < 0x03000000

TEST(what_was_computed_of_a_curve_is_kept_with_the_key)
{
    make_key(MBEDTLS_ECP_DP_SECP256R1);
    CHECK_INT(crypto_pk_keep(&key), 0);
    CHECK(!mbedtls_pk_ec(key)->grp.T);
    check_signs();
    CHECK(mbedtls_pk_ec(key)->grp.T);
    free_keys();
}

#endif

int main(void)
{
    return check_run();
}
