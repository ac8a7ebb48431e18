#include "base/codec.h"

#include "support/check.h"

static struct buf out;

static struct str encoded(void (*encode)(struct buf *, struct str), struct str bytes)
{
    buf_fini(&out);
    buf_init(&out, 4096);
    encode(&out, bytes);
    return buf_str(&out);
}

static void base64(struct buf *b, struct str bytes)
{
    codec_base64(b, bytes, CODEC_BASE64);
}

static void base64_url(struct buf *b, struct str bytes)
{
    codec_base64(b, bytes, CODEC_BASE64_URL);
}

static void percent(struct buf *b, struct str bytes)
{
    codec_percent(b, bytes, CODEC_KEEP_UNRESERVED);
}

static void percent_path(struct buf *b, struct str bytes)
{
    codec_percent(b, bytes, CODEC_KEEP_PATH);
}

#define CHECK_ENCODED(encode, bytes, want)                                                         \
    do {                                                                                           \
        struct str got_text = encoded(encode, STR(bytes));                                         \
        CHECK_MEM(got_text.at, got_text.len, want, strlen(want));                                  \
    } while (0)

TEST(hex_goes_out_in_lower_case_and_comes_in_in_either)
{
    unsigned char bytes[4];

    CHECK_ENCODED(codec_hex, "\x00\x7f\xab\xff", "007fabff");
    CHECK_ENCODED(codec_hex, "", "");
    CHECK(codec_hex_decode(STR("007fABfF"), bytes));
    CHECK_MEM(bytes, 4, "\x00\x7f\xab\xff", 4);
}

TEST(hex_with_a_wrong_letter_or_an_odd_length_is_refused)
{
    unsigned char bytes[4];

    CHECK(!codec_hex_decode(STR("abc"), bytes));
    CHECK(!codec_hex_decode(STR("0g"), bytes));
    CHECK(!codec_hex_decode(STR("g0"), bytes));
    CHECK(codec_hex_decode(STR(""), bytes));
}

/* RFC 4648, section 10. */
TEST(base64_gives_the_vectors_of_its_rfc)
{
    CHECK_ENCODED(base64, "", "");
    CHECK_ENCODED(base64, "f", "Zg==");
    CHECK_ENCODED(base64, "fo", "Zm8=");
    CHECK_ENCODED(base64, "foo", "Zm9v");
    CHECK_ENCODED(base64, "foob", "Zm9vYg==");
    CHECK_ENCODED(base64, "fooba", "Zm9vYmE=");
    CHECK_ENCODED(base64, "foobar", "Zm9vYmFy");
    CHECK_ENCODED(base64, "\xff\xfe\xfd", "//79");
    CHECK_ENCODED(base64_url, "\xff\xfe\xfd", "__79");
    CHECK_ENCODED(base64_url, "f", "Zg");
    CHECK_ENCODED(base64_url, "fo", "Zm8");
}

TEST(base64_comes_back_as_it_was)
{
    char   bytes[64], back[80];
    size_t len;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 37 + 200);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        for (int alphabet = CODEC_BASE64; alphabet <= CODEC_BASE64_URL; alphabet++) {
            struct str text =
                encoded(alphabet == CODEC_BASE64 ? base64 : base64_url, str_make(bytes, n));

            CHECK(codec_base64_bytes(text) >= n && codec_base64_bytes(text) <= sizeof(back));
            CHECK(codec_base64_decode(text, alphabet, back, &len));
            CHECK_MEM(back, len, bytes, n);
        }
    }
}

TEST(base64_that_no_encoder_writes_is_refused)
{
    static const char *const bad[] = {
        "Z",       "Zg",   "Zg=",  "Zg===", "Z===",   "====", "Zm9v=",
        "Zm9vYg=", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zm-_", "Zg==Zg==",
    };
    char   back[16];
    size_t len = 99;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!codec_base64_decode(str_of(bad[i]), CODEC_BASE64, back, &len));
    CHECK(!codec_base64_decode(STR("Zm+/"), CODEC_BASE64_URL, back, &len));
    CHECK(!codec_base64_decode(STR("Zg="), CODEC_BASE64_URL, back, &len));
    CHECK(!codec_base64_decode(STR("A"), CODEC_BASE64_URL, back, &len));
    CHECK_INT(len, 99);
    CHECK(codec_base64_decode(STR("Zg=="), CODEC_BASE64_URL, back, &len));
    CHECK_MEM(back, len, "f", 1);
}

TEST(percent_keeps_what_the_place_allows)
{
    CHECK_ENCODED(percent, "a b/\xc3\xa9~-._'", "a%20b%2F%C3%A9~-._%27");
    CHECK_ENCODED(percent_path, "/a b?c=d&e\"", "/a%20b%3Fc=d&e%22");
    CHECK_ENCODED(percent_path, "\0", "%00");
}

TEST(percent_is_decoded_once_and_in_place)
{
    char   text[] = "a%2520%00b+";
    size_t len;

    CHECK(codec_percent_decode(str_make(text, sizeof(text) - 1), text, &len));
    CHECK_MEM(text, len, "a%20\0b+", 7);
}

TEST(a_percent_sign_without_two_digits_is_refused)
{
    char   text[8];
    size_t len;

    CHECK(!codec_percent_decode(STR("%"), text, &len));
    CHECK(!codec_percent_decode(STR("a%2"), text, &len));
    CHECK(!codec_percent_decode(STR("%g0"), text, &len));
    CHECK(!codec_percent_decode(STR("%0g"), text, &len));
}

TEST(an_encoder_that_meets_the_bound_says_so_and_adds_nothing)
{
    struct buf small;

    buf_init(&small, 5);
    codec_hex(&small, STR("abc"));
    CHECK(small.failed);
    CHECK_INT(small.len, 0);
    buf_fini(&small);
}

int main(void)
{
    int status = check_run();

    buf_fini(&out);
    return status;
}
