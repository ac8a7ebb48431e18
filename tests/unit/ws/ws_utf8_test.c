#include "ws/ws_utf8.h"

#include "base/compiler.h"
#include "base/rand.h"
#include "base/text.h"
#include "support/check.h"

/* One character after the other, as base/text sees it. */
static bool is_text(struct str s)
{
    while (s.len) {
        size_t len = text_utf8_len(s);

        if (!len)
            return false;
        s = str_from(s, len);
    }
    return true;
}

static bool is_text_in_pieces(struct str s, size_t piece)
{
    struct ws_utf8 utf8 = { 0 };

    for (; s.len > piece; s = str_from(s, piece))
        if (!ws_utf8_feed(&utf8, str_make(s.at, piece)))
            return false;
    return ws_utf8_feed(&utf8, s) && ws_utf8_is_whole(&utf8);
}

TEST(every_sequence_of_four_bytes_at_the_borders_is_judged_as_base_text_judges_it)
{
    static const unsigned char EDGES[] = { 0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                           0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
                                           0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
    enum { N = ARRAY_LEN(EDGES) };

    for (unsigned i = 0; i < N * N * N * N; i++) {
        char bytes[4] = { (char)EDGES[i % N], (char)EDGES[i / N % N], (char)EDGES[i / N / N % N],
                          (char)EDGES[i / N / N / N] };
        struct str s  = str_make(bytes, 4);
        bool       is = is_text(s);

        if (ws_utf8_is_text(s) != is || is_text_in_pieces(s, 1) != is ||
            is_text_in_pieces(s, 3) != is)
            CHECK(!"judged otherwise");
    }
}

TEST(long_texts_are_judged_alike_however_they_are_cut)
{
    for (unsigned round = 0; round < 2000; round++) {
        char       text[100];
        size_t     len = 0;
        struct str s;

        while (len < 90) {
            static const char *const PARTS[] = { "a", "\xc3\xbc", "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80", "abcdefghijklmnopq" };
            struct str               part    = str_of(PARTS[rand_below(ARRAY_LEN(PARTS))]);

            if (len + part.len > 96)
                break;
            memcpy(text + len, part.at, part.len);
            len += part.len;
        }
        if (round % 2)
            text[rand_below(len)] = (char)rand_below(256);
        s = str_make(text, len);
        for (size_t piece = 1; piece < 20; piece++)
            CHECK(is_text_in_pieces(s, piece) == is_text(s));
    }
}

TEST(the_first_wrong_byte_is_found_when_it_comes)
{
    struct ws_utf8 utf8 = { 0 };

    CHECK(ws_utf8_feed(&utf8, STR("abc\xed")));
    CHECK(!ws_utf8_is_whole(&utf8));
    CHECK(!ws_utf8_feed(&utf8, STR("\xa0"))); /* a surrogate */
}

int main(void)
{
    return check_run();
}
