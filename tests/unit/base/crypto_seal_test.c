#include "base/crypto_seal.h"

#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "support/check.h"

static const struct str SECRET = STR_INIT("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
static const struct str TEXT   = STR_INIT("attack at dawn, not before");
static const struct str AAD    = STR_INIT("for ann");

static struct buf text;

static void check_hex(struct str bytes, const char *want)
{
    buf_fini(&text);
    buf_init(&text, 1024);
    codec_hex(&text, bytes);
    CHECK_MEM(text.at, text.len, want, strlen(want));
}

/* RFC 5869, A.1 and A.3. */
TEST(hkdf_gives_the_vectors_of_its_rfc)
{
    char secret[22], out[42];

    memset(secret, 0x0b, sizeof(secret));
    crypto_hkdf(str_make(secret, sizeof(secret)),
                STR("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"),
                STR("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9"), out, sizeof(out));
    check_hex(
        str_make(out, sizeof(out)),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    crypto_hkdf(str_make(secret, sizeof(secret)), STR_NONE, STR_NONE, out, sizeof(out));
    check_hex(
        str_make(out, sizeof(out)),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

/* Salt 00..17, made by another program: HKDF by hashlib, AES and GHASH written after FIPS 197 and SP
 * 800-38D. Whoever changes the format breaks what others have kept. */
TEST(a_text_that_was_sealed_long_ago_can_be_opened)
{
    static const char SEALED[] =
        "01000102030405060708090a0b0c0d0e0f10111213141516173107334b949028c07e41574e"
        "30ea78d40bd2914ea4bb3976d27f254c0c6d056868e71a7112ded1413c45";
    char sealed[(sizeof(SEALED) - 1) / 2], opened[sizeof(sealed)];

    CHECK(codec_hex_decode(str_make(SEALED, sizeof(SEALED) - 1), sealed));
    CHECK_INT(crypto_unseal(SECRET, str_make(sealed, sizeof(sealed)), AAD, opened), 0);
    CHECK_MEM(opened, sizeof(sealed) - CRYPTO_SEAL_BYTES, TEXT.at, TEXT.len);
}

static void check_round(struct str plain, struct str aad)
{
    char sealed[128], opened[128];

    CHECK_INT(crypto_seal(SECRET, plain, aad, sealed), 0);
    CHECK_INT(crypto_unseal(SECRET, str_make(sealed, plain.len + CRYPTO_SEAL_BYTES), aad, opened),
              0);
    CHECK_MEM(opened, plain.len, plain.at, plain.len);
}

TEST(what_is_sealed_can_be_opened)
{
    check_round(TEXT, AAD);
    check_round(TEXT, STR_NONE);
    check_round(STR_NONE, AAD);
    check_round(STR_NONE, STR_NONE);
}

TEST(the_same_text_is_never_sealed_alike)
{
    char a[128], b[128];

    CHECK_INT(crypto_seal(SECRET, TEXT, AAD, a), 0);
    CHECK_INT(crypto_seal(SECRET, TEXT, AAD, b), 0);
    CHECK(memcmp(a + 25, b + 25, TEXT.len) != 0);
}

TEST(each_changed_bit_is_found)
{
    char   sealed[128], opened[128];
    size_t len = TEXT.len + CRYPTO_SEAL_BYTES;

    CHECK_INT(crypto_seal(SECRET, TEXT, AAD, sealed), 0);
    for (size_t bit = 0; bit < len * 8; bit++) {
        sealed[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_INT(crypto_unseal(SECRET, str_make(sealed, len), AAD, opened), ERR_INVALID);
        sealed[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_INT(crypto_unseal(SECRET, str_make(sealed, len), AAD, opened), 0);
}

TEST(another_key_other_data_and_a_cut_text_open_nothing)
{
    char   sealed[128], opened[128];
    size_t len = TEXT.len + CRYPTO_SEAL_BYTES;

    CHECK_INT(crypto_seal(SECRET, TEXT, AAD, sealed), 0);
    CHECK_INT(
        crypto_unseal(STR("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkl"), str_make(sealed, len), AAD, opened),
        ERR_INVALID);
    CHECK_INT(crypto_unseal(SECRET, str_make(sealed, len), STR("for bob"), opened), ERR_INVALID);
    for (size_t cut = 0; cut < len; cut++) {
        char *copy = malloc(cut + 1); /* of its own, so that the sanitizer sees a read beyond it */

        memcpy(copy, sealed, cut);
        int rc = crypto_unseal(SECRET, str_make(copy, cut), AAD, opened);
        free(copy);
        CHECK_INT(rc, ERR_INVALID);
    }
}

int main(void)
{
    int status = check_run();

    buf_fini(&text);
    return status;
}
