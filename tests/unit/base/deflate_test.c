#include "base/deflate.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/coding.h"
#include "support/check.h"

#define TEXT "hello hello hello hello\n"

/* TEXT in the three formats. */
static const unsigned char GZIP[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                      0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9,
                                      0x00, 0x00, 0x88, 0x59, 0x0b, 0x18, 0x00, 0x00, 0x00 };
static const unsigned char ZLIB[] = { 0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                      0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb };
static const unsigned char RAW[]  = { 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
                                      0xc8, 0x40, 0x27, 0xb9, 0x00 };

struct result {
    enum coding_step step;
    char             text[256];
    size_t           len;
    size_t           left; /* input that was not used */
};

static struct str span(const unsigned char *bytes, size_t len)
{
    return str_make((const char *)bytes, len);
}

/* IN_STEP bytes at a time go in, OUT_STEP come out. */
static struct result decode(struct str all, size_t in_step, size_t out_step)
{
    struct coding *coding = deflate_reader_new();
    struct result  result = { .step = CODING_MORE };
    size_t         there  = 0;
    struct str     in     = STR_NONE;

    while (result.step == CODING_MORE || result.step == CODING_FULL) {
        size_t made;

        if (result.step == CODING_MORE) {
            size_t more = all.len - there < in_step ? all.len - there : in_step;

            CHECK_INT(in.len, 0);
            in = str_make(all.at + there, more);
            there += more;
        }
        CHECK(result.len + out_step <= sizeof(result.text));
        result.step =
            coding_run(coding, &in, there == all.len, result.text + result.len, out_step, &made);
        result.len += made;
    }
    result.left = in.len + all.len - there;
    coding_free(coding);
    return result;
}

static void check_text(struct str all, const char *want)
{
    for (size_t in_step = 1; in_step <= all.len; in_step++) {
        for (size_t out_step = 1; out_step < 40; out_step += 13) {
            struct result result = decode(all, in_step, out_step);

            CHECK_INT(result.step, CODING_DONE);
            CHECK_MEM(result.text, result.len, want, strlen(want));
            CHECK_INT(result.left, 0);
        }
    }
}

TEST(gzip_zlib_and_raw_deflate_are_told_apart_however_they_are_cut)
{
    check_text(span(GZIP, sizeof(GZIP)), TEXT);
    check_text(span(ZLIB, sizeof(ZLIB)), TEXT);
    check_text(span(RAW, sizeof(RAW)), TEXT);
}

TEST(members_in_a_row_are_one_text)
{
    unsigned char two[2 * sizeof(GZIP) + 3] = { 0 };

    memcpy(two, GZIP, sizeof(GZIP));
    memcpy(two + sizeof(GZIP), GZIP, sizeof(GZIP));
    check_text(span(two, 2 * sizeof(GZIP)), TEXT TEXT);
    check_text(span(two, sizeof(two)), TEXT TEXT);
}

TEST(what_is_cut_short_is_broken)
{
    for (size_t len = 0; len < sizeof(GZIP); len++)
        CHECK_INT(decode(span(GZIP, len), 7, 64).step, CODING_BROKEN);
    for (size_t len = 0; len < sizeof(ZLIB); len++)
        CHECK_INT(decode(span(ZLIB, len), 7, 64).step, CODING_BROKEN);
}

TEST(a_wrong_sum_or_no_deflate_at_all_is_broken)
{
    unsigned char bad[sizeof(GZIP)];

    memcpy(bad, GZIP, sizeof(GZIP));
    bad[sizeof(bad) - 5] ^= 1;
    CHECK_INT(decode(span(bad, sizeof(bad)), 100, 64).step, CODING_BROKEN);
    CHECK_INT(decode(STR("\x1f\x8b\x08\xff nonsense"), 100, 64).step, CODING_BROKEN);
    CHECK_INT(decode(STR("\xff\xff\xff\xff\xff"), 100, 64).step, CODING_BROKEN);
}

/* --- raw deflate, flushed instead of ended ------------------------------------------------------------ */

static size_t write_flushed(struct coding *writer, struct str text, char out[256])
{
    size_t made, more;

    CHECK_INT(coding_run(writer, &text, false, out, 128, &made), CODING_MORE);
    CHECK_INT(coding_flush(writer, out + made, 128, &more), CODING_MORE);
    return made + more;
}

TEST(raw_texts_that_end_in_a_flush_are_read_each_by_itself)
{
    struct coding *writer = deflate_raw_writer_new(), *reader = deflate_raw_reader_new();
    char           first[256], again[256], text[256];
    size_t         len = write_flushed(writer, STR(TEXT), first), made;

    CHECK_MEM(first + len - 4, 4, "\x00\x00\xff\xff", 4);
    CHECK(coding_reset(writer));
    CHECK_INT(write_flushed(writer, STR(TEXT), again), len);
    CHECK_MEM(again, len, first, len);
    for (unsigned i = 0; i < 2; i++) {
        struct str in = str_make(first, len);

        CHECK_INT(coding_run(reader, &in, false, text, sizeof(text), &made), CODING_MORE);
        CHECK_MEM(text, made, TEXT, strlen(TEXT));
        CHECK(coding_reset(reader));
    }
    coding_free(writer);
    coding_free(reader);
}

TEST(a_raw_reader_stops_behind_a_final_block)
{
    struct coding *reader = deflate_raw_reader_new();
    unsigned char  two[2 * sizeof(RAW)];
    struct str     in = span(two, sizeof(two));
    char           text[256];
    size_t         made;

    memcpy(two, RAW, sizeof(RAW));
    memcpy(two + sizeof(RAW), RAW, sizeof(RAW));
    CHECK_INT(coding_run(reader, &in, false, text, sizeof(text), &made), CODING_DONE);
    CHECK_MEM(text, made, TEXT, strlen(TEXT));
    CHECK_INT(in.len, sizeof(RAW));
    CHECK(coding_reset(reader));
    CHECK_INT(coding_run(reader, &in, false, text, sizeof(text), &made), CODING_DONE);
    CHECK_MEM(text, made, TEXT, strlen(TEXT));
    coding_free(reader);
}

int main(void)
{
    return check_run();
}
