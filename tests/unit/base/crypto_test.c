#include "base/crypto.h"

#include "base/codec.h"
#include "support/check.h"

static struct buf text;

static void check_hex(const void *digest, size_t len, const char *want)
{
    buf_fini(&text);
    buf_init(&text, 256);
    codec_hex(&text, str_make(digest, len));
    CHECK_MEM(text.at, text.len, want, strlen(want));
}

static void check_digest(enum crypto_hash hash, struct str bytes, const char *want)
{
    unsigned char digest[CRYPTO_DIGEST_BYTES_MAX];

    crypto_digest(hash, bytes, digest);
    check_hex(digest, crypto_digest_bytes(hash), want);
}

/* FIPS 180-4's examples. */
TEST(digests_give_the_published_values)
{
    check_digest(CRYPTO_MD5, STR("abc"), "900150983cd24fb0d6963f7d28e17f72"); /* RFC 1321 */
    check_digest(CRYPTO_SHA384, STR("abc"),
                 "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"
                 "1a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7");
    check_digest(CRYPTO_SHA1, STR("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    check_digest(CRYPTO_SHA256, STR("abc"),
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_digest(CRYPTO_SHA256, STR_NONE,
                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_digest(CRYPTO_SHA512, STR("abc"),
                 "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                 "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

static void check_hmac(struct str key, struct str bytes, const char *want)
{
    unsigned char digest[CRYPTO_DIGEST_BYTES_MAX];

    crypto_hmac(CRYPTO_SHA256, key, bytes, digest);
    check_hex(digest, 32, want);
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block). */
TEST(hmac_gives_the_vectors_of_its_rfc)
{
    char long_key[131];

    check_hmac(
        STR("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
        STR("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac(STR("Jefe"), STR("what do ya want for nothing?"),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(long_key, 0xaa, sizeof(long_key));
    check_hmac(str_make(long_key, sizeof(long_key)),
               STR("Test Using Larger Than Block-Size Key - Hash Key First"),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(equal_compares_all_bytes_and_the_length)
{
    CHECK(crypto_equal(STR("secret"), STR("secret")));
    CHECK(crypto_equal(STR_NONE, STR("")));
    CHECK(!crypto_equal(STR("secret"), STR("secreT")));
    CHECK(!crypto_equal(STR("Secret"), STR("secret")));
    CHECK(!crypto_equal(STR("secret"), STR("secre")));
    CHECK(!crypto_equal(STR("a\0b"), STR("a\0c")));
}

int main(void)
{
    int status = check_run();

    buf_fini(&text);
    return status;
}
