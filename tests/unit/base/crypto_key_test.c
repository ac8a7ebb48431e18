#include "base/crypto_key.h"

#include "base/codec.h"
#include "base/err.h"
#include "support/check.h"

/* The keys of RFC 7515, A.2 and A.3, as PEM. */
static const struct str RFC_RSA =
    STR_INIT("-----BEGIN PUBLIC KEY-----\n"
             "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj\n"
             "NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz\n"
             "P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo\n"
             "9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB\n"
             "EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX\n"
             "FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp\n"
             "oQIDAQAB\n"
             "-----END PUBLIC KEY-----\n");
static const struct str RFC_EC =
    STR_INIT("-----BEGIN PUBLIC KEY-----\n"
             "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n"
             "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"
             "-----END PUBLIC KEY-----\n");

/* Private keys made for these tests alone. */
static const struct str RSA =
    STR_INIT("-----BEGIN PRIVATE KEY-----\n"
             "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7QfYXcwo5c4xH\n"
             "tllJ70xzqNrTUSwQBVO7Dmxzm7bcxHVwJc4Dso70EhWwGQyA1GkmoEGAMLGE3Pp6\n"
             "MuJUbls8BaZPzEB1H0UNXTqksOdeEt8DMnJUgW5H9foNi9hQFvWbPzs9tGLk0ygm\n"
             "rQVPRxP7uNapaw5XaCdsQ3yk3WcGdTN1WNl6XLUzTV7suO+2Wbz8hakagAmEiKoP\n"
             "gcn0uaHSHunn4rUyHo6STv7K2C5xufXa35udUFlIPeTnEKN7kE+idloKm+XHkkts\n"
             "BI6TiRMTC78lhZ4WdnYe+ySLJET28xqqbLxNZMNlB/CnXn6DP1ZfI5JeNOm0mrWl\n"
             "2ffrEe03AgMBAAECggEAFUwW5BXbvNWtHQmFNYkiMH6s3J8nxsQEVjWkFLCfZz5v\n"
             "fjYegdcmC7ue0ddsz54uPgwN8bltXIdmyXfOEVI3zXzLAdpgyQapwNpbQsMynUVs\n"
             "2HKSrupwPij2ATe9fhEOaqi8tnOJ/S0dgkCSu7CBelNMaW+umDb//NU0G5VpaUIV\n"
             "/VJj32AEc/K1TzMzjJKa/QT2HSI17/XquSCfRDIPd9YaM90afW2f8kMcQ7J8tiw8\n"
             "0jm/HcmB2i44MnqdWtauICVNmBLjcN0Ql4xKONxZ0qszQPVJZgKK3P8W/JinBCSr\n"
             "C6PzCgRHJk3RAIoiURrhAUY75vO0TLh10VCHhSOPEQKBgQDiOjWShVSPKQWF7Rj1\n"
             "olTLeo7QzY+xLx6oGcNf2gbszPXnChX8EBIGcDcL8P3PA+/8Z8cP19x5iLoj8FqR\n"
             "rdZfMeR1FvcVNKT/5d78F2iOxBbaIi9liuVgoKv52RmFbhd4aaxRLEGoIFSoF2JG\n"
             "k1xiYw9ebpbVnT+4s/rymf4xXwKBgQDT5tRVQ6/UTIzuNzxThYx/T26pD41huhvT\n"
             "Qo0pMpGEm6SELa1GAAI0LHmzZgaMyb6+XvA/OD+OJ2VbQQ2E2HPOkdAmF5wha5ta\n"
             "l5NQYzIFYNDECTD6ZHvLSeBv+y0MvSdzZSKZs//FTfDAW9sC5j1760C7Qyu18nE2\n"
             "ylbKDDkbKQKBgQDQzj1oUdwsjwZkCOWCwyRU83giTbmVJxK6wZzNOeYuZzeI2oxU\n"
             "LVkVzDlisjrx+oZliDv56Zm8K3DzfwN5duRo1Roy4NGKJx8serWIJOsC6wbUq7zn\n"
             "kn4I5AQYBkRCHc1X/OFpwtmPHthEleDFl3or7Zbf6F8cJ5oLF0RG68/tLQKBgFN1\n"
             "UqPSaOogzFD2iFgM/W0XB+qmKXUYK+VlDNvxAsdL1dwJcXlkf3m1GqnBwUqqGuo3\n"
             "0j/UE5QViCIM2Ro9dj8hxu151xCCpUlk8axzpTvhCdhsFlJISUmj6zWvo+qkhWk5\n"
             "qAsJje9T50Kb6wKVVBn+ahxXNFwRBO4je1NQxR0hAoGBAIrPtaDCAKph5hXb8jI0\n"
             "dUKmOnAYXja/bGbplirXc5xeYbp698Ik8lr3tT7C9oE5mk69Hrb1xpp/GVrTiKrL\n"
             "C8MNx0h8BhgN0Q6qAN6yPtI18CwrVSw/m8bOTj981c02LpVlF1in88QtA8yjN9Ul\n"
             "fAVe6BLcX0ylO2qYvAotWEQC\n"
             "-----END PRIVATE KEY-----\n");
static const struct str SMALL_RSA =
    STR_INIT("-----BEGIN PRIVATE KEY-----\n"
             "MIICdQIBADANBgkqhkiG9w0BAQEFAASCAl8wggJbAgEAAoGBAMBuWWsXqaJyVkds\n"
             "/escor6BZNJofQx12o35EExWTsuLKVBampjgbXGbZCXEQ7tjwTcDeFlegdrGLgzj\n"
             "Y0SvT4/z4P47DMQAyum7YSl+v/K/8EFTb9b28j6jvq0InjR8hT2msktvfnj7KBW+\n"
             "xSotOCc/or/4KtNZ1RtmGmZoeU25AgMBAAECgYBU4Vf38RwWV7DPGLh4OM1gktrS\n"
             "JNzj3ihlb3NM+NUQ23WByDVhMb2U2yI1tnjZ84qKpbE0WoeU5M3zSWnEJkBFTu5o\n"
             "7AshAF43pGfan+n3ybdV1nSUsQXv4v4I0qPY4hxLsTwR4C07GV42mWmRDIciyRjE\n"
             "RvbXXkjwa+zLZA1OAQJBAOyDZp2IdsEkZNFSZoa6Cs1v7QfxUElTjpXIEpP0ow7d\n"
             "TtzYrReRsV6X3jsQPj3OfBDI4QOLErPgAke/SAN3HSkCQQDQSSeWQTOtieXFrthv\n"
             "42guKTF+cjTfeMcAD4HUuQ1R1rXQsFLR7b4YY7noqPZdyc/g/vJDaXbaTzmX84x7\n"
             "Gy4RAkBCL7NzulChVDHycgDHCyEixIOsiVdSbdOlDsxEI13ONxhurSQjSF4+fnlu\n"
             "RellGneVquFtQGoHdFSvB1R7w8WhAkABoWD28yG1bQvoZTr6fTw2iEoD5F73lNlx\n"
             "7a0lfiFVj6myrX6oeATx6e3tnUz4ZPkEmNpKnsu4X8BiqRxjZk4RAkB/Dap4o2lJ\n"
             "eGKuRGt4oaBi2o8foDDWFTLD8rlsbd/KbmvqmjEVpoIITSsVSDcmQo1JvsiZ1P4V\n"
             "tHnUGo0xV8qc\n"
             "-----END PRIVATE KEY-----\n");
static const struct str P256 =
    STR_INIT("-----BEGIN EC PRIVATE KEY-----\n"
             "MHcCAQEEIFvrZvEO2K/UeHJI+D6SLJfgubOV89tNQSf48ypQZrI0oAoGCCqGSM49\n"
             "AwEHoUQDQgAE3sdKtVdrDZcjA9zU9jO4+9WRdfmA40CIHKGvZuCv02X/3rqzRWzV\n"
             "sxeSjkBI62qTOczqxv7jfs8UHREO+ymcOg==\n"
             "-----END EC PRIVATE KEY-----\n");
static const struct str P384 =
    STR_INIT("-----BEGIN EC PRIVATE KEY-----\n"
             "MIGkAgEBBDAK9C8ldDaYvvFy0tHONkZOYraE6z2LNpu8Wq+m2XyXqyOZPW5Xb8+0\n"
             "zoScpKvR1CCgBwYFK4EEACKhZANiAARnSXKKXtezI4MDETiaI/NQiinhw7P7pLg4\n"
             "ZCkO8vhKJZe29Hl5gChxlYWPC0veGjSWI7sDo7JHsqgznpgYER1mZRUtYSDg5Q5e\n"
             "ZHjK51t1sh0dZkpm377n0jWRgh5p+WU=\n"
             "-----END EC PRIVATE KEY-----\n");
static const struct str P521 =
    STR_INIT("-----BEGIN EC PRIVATE KEY-----\n"
             "MIHcAgEBBEIApxV/zQ/Cmad2zuaBF+6HLAzte8oEbWabV9TYbftLqxyPHbpjYUY6\n"
             "1gH50bbQ0ngk8Mm9ABIx9R4p1jTMEKmXeI6gBwYFK4EEACOhgYkDgYYABABOxNEk\n"
             "MpE3aCbCSuN2o5Fd8TRsTRs/c8O2RYH4R6LSdAgVQIcXq4VqAydbQDGv3y9xSH56\n"
             "F/rWgqrKWd+6TVTaQACleHh6rWrj6PkBC53en77dWr3qn+/j4IuJN6Rc+Qxt/WTB\n"
             "n94X5GvK8XnbgzZFk+RdUEVzMUK52akbMOpGrT4O8A==\n"
             "-----END EC PRIVATE KEY-----\n");
static const struct str KOBLITZ =
    STR_INIT(/* 256 bits, another curve */
             "-----BEGIN EC PRIVATE KEY-----\n"
             "MHQCAQEEIJ/2/T9AIh2P183UJUPZ/Y89A6wjTnr01bfWP/fjC7RPoAcGBSuBBAAK\n"
             "oUQDQgAE1yNEf2wc2pQohlotmCWlKwn3+bCqCASV9Y9nOr/VMQd6B+m+FXA5qjwU\n"
             "SARxb+PzwA5i2YUDR5wIkl1LmzTNgA==\n"
             "-----END EC PRIVATE KEY-----\n");

static enum crypto_verdict verify_token(enum crypto_scheme scheme, struct str pem, struct str bytes,
                                        struct str base64url)
{
    char       signature[CRYPTO_SIGNATURE_BYTES_MAX];
    size_t     len;
    struct err err;

    CHECK(codec_base64_decode(base64url, CODEC_BASE64_URL, signature, &len));
    return crypto_verify(scheme, pem, bytes, str_make(signature, len), &err);
}

TEST(the_tokens_of_the_rfc_are_genuine)
{
    CHECK_INT(
        verify_token(CRYPTO_RS256, RFC_RSA,
                     STR("eyJhbGciOiJSUzI1NiJ9."
                         "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNv"
                         "bS9pc19yb290Ijp0cnVlfQ"),
                     STR("cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4B"
                         "h-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZ"
                         "LgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d"
                         "O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6"
                         "LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw")),
        CRYPTO_GENUINE);
    CHECK_INT(
        verify_token(CRYPTO_ES256, RFC_EC,
                     STR("eyJhbGciOiJFUzI1NiJ9."
                         "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNv"
                         "bS9pc19yb290Ijp0cnVlfQ"),
                     STR("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKT"
                         "UJqPP3-Kg6NU1Q")),
        CRYPTO_GENUINE);
}

/* Signed with KEY, verified, and verified again with one bit changed at AT. */
static void check_round(enum crypto_scheme scheme, struct str key, size_t want_len)
{
    char       signature[CRYPTO_SIGNATURE_BYTES_MAX];
    size_t     len;
    struct err err;

    CHECK_INT(crypto_sign(scheme, key, STR("head.claims"), signature, &len, &err), 0);
    CHECK_INT(len, want_len);
    CHECK_INT(crypto_verify(scheme, key, STR("head.claims"), str_make(signature, len), &err),
              CRYPTO_GENUINE);
    CHECK_INT(crypto_verify(scheme, key, STR("head.claimz"), str_make(signature, len), &err),
              CRYPTO_FORGED);
    CHECK_INT(crypto_verify(scheme, key, STR("head.claims"), str_make(signature, len - 1), &err),
              CRYPTO_FORGED);
    CHECK_INT(crypto_verify(scheme, key, STR("head.claims"), STR_NONE, &err), CRYPTO_FORGED);
    signature[len / 2] ^= 1;
    CHECK_INT(crypto_verify(scheme, key, STR("head.claims"), str_make(signature, len), &err),
              CRYPTO_FORGED);
    memset(signature, 0, sizeof(signature)); /* r = s = 0, CVE-2022-21449 */
    CHECK_INT(crypto_verify(scheme, key, STR("head.claims"), str_make(signature, len), &err),
              CRYPTO_FORGED);
}

TEST(each_scheme_verifies_what_it_signed_and_nothing_else)
{
    check_round(CRYPTO_RS256, RSA, 256);
    check_round(CRYPTO_RS384, RSA, 256);
    check_round(CRYPTO_RS512, RSA, 256);
    check_round(CRYPTO_ES256, P256, 64);
    check_round(CRYPTO_ES384, P384, 96);
    check_round(CRYPTO_ES512, P521, 132);
}

/* A number that begins with zeros has fewer bytes in DER: sooner or later each length comes. */
TEST(numbers_of_any_length_keep_their_place)
{
    char       signature[CRYPTO_SIGNATURE_BYTES_MAX];
    size_t     len;
    struct err err;

    for (unsigned i = 0; i < 40; i++) {
        struct str bytes = str_make((const char *)&i, sizeof(i));

        CHECK_INT(crypto_sign(CRYPTO_ES256, P256, bytes, signature, &len, &err), 0);
        CHECK_INT(len, 64);
        CHECK_INT(crypto_verify(CRYPTO_ES256, P256, bytes, str_make(signature, len), &err),
                  CRYPTO_GENUINE);
    }
}

static void check_refused(enum crypto_scheme scheme, struct str key, const char *why)
{
    char       signature[CRYPTO_SIGNATURE_BYTES_MAX];
    size_t     len;
    struct err err;

    CHECK_INT(crypto_sign(scheme, key, STR("x"), signature, &len, &err), ERR_INVALID);
    CHECK_STR(err.text, why);
}

TEST(a_key_of_another_kind_is_refused)
{
    struct err err;

    check_refused(CRYPTO_RS256, P256, "RS256 wants an RSA key");
    check_refused(CRYPTO_RS256, SMALL_RSA, "RS256 wants an RSA key of 2048 to 8192 bits, not 1024");
    check_refused(CRYPTO_ES256, RSA, "ES256 wants a key on the curve P-256");
    check_refused(CRYPTO_ES256, P384, "ES256 wants a key on the curve P-256");
    check_refused(CRYPTO_ES256, KOBLITZ, "ES256 wants a key on the curve P-256");
    check_refused(CRYPTO_ES512, P256, "ES512 wants a key on the curve P-521");
    check_refused(CRYPTO_RS256, RFC_RSA, "the key is no private key in PEM without a password");
    CHECK_INT(crypto_verify(CRYPTO_ES256, STR("-----BEGIN PUBLIC KEY-----\nAAAA\n"), STR("x"),
                            STR("y"), &err),
              CRYPTO_BAD_KEY);
    CHECK_STR(err.text, "the key is no public key in PEM without a password");
    CHECK_INT(crypto_verify(CRYPTO_ES256, STR_NONE, STR("x"), STR("y"), &err), CRYPTO_BAD_KEY);
}

int main(void)
{
    return check_run();
}
