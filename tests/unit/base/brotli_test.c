#include "base/brotli.h"

#include "base/coding.h"
#include "support/check.h"

/* One uncompressed meta-block of "hello", and the empty last one (RFC 7932, 9.2). */
static const char HELLO[] = "\x0b\x02\x80hello\x03";

static enum coding_step decode(struct str all, size_t in_step, char *to, size_t room, size_t *len)
{
    struct coding   *coding = brotli_reader_new();
    enum coding_step step   = CODING_MORE;
    struct str       in     = STR_NONE;
    size_t           there  = 0, made;

    *len = 0;
    while (step == CODING_MORE || step == CODING_FULL) {
        if (step == CODING_MORE) {
            size_t more = all.len - there < in_step ? all.len - there : in_step;

            in = str_make(all.at + there, more);
            there += more;
        }
        CHECK(*len < room);
        step = coding_run(coding, &in, there == all.len, to + *len, 1, &made);
        *len += made;
    }
    coding_free(coding);
    return step;
}

TEST(brotli_is_read_however_it_is_cut)
{
    for (size_t step = 1; step < sizeof(HELLO); step++) {
        char   text[64];
        size_t len;

        CHECK_INT(decode(str_make(HELLO, sizeof(HELLO) - 1), step, text, sizeof(text), &len),
                  CODING_DONE);
        CHECK_MEM(text, len, "hello", 5);
    }
}

TEST(what_is_cut_short_or_no_brotli_is_broken)
{
    char   text[64];
    size_t len;

    for (size_t cut = 0; cut < sizeof(HELLO) - 1; cut++)
        CHECK_INT(decode(str_make(HELLO, cut), 3, text, sizeof(text), &len), CODING_BROKEN);
    CHECK_INT(decode(STR("\xff\xff\xff\xff\xff\xff"), 3, text, sizeof(text), &len), CODING_BROKEN);
}

int main(void)
{
    return check_run();
}
