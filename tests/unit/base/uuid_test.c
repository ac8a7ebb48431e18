#include "base/uuid.h"

#include <stdlib.h>

#include "support/check.h"

static const int64_t MOMENT = 0x017f22e279b0; /* RFC 9562, A.6: 2022-02-22 19:22:22 UTC */

static void make(struct uuid_source *source, int64_t ms, char *to)
{
    uuid_write(source, ms, to);
    to[UUID_LEN] = 0;
}

TEST(it_begins_with_the_time_and_says_its_version)
{
    struct uuid_source source = { 0 };
    char               text[UUID_LEN + 1];

    for (int i = 0; i < 100; i++) {
        make(&source, MOMENT, text);
        CHECK_MEM(text, 15, "017f22e2-79b0-7", 15);
        CHECK(text[18] == '-' && text[23] == '-');
        CHECK(strchr("89ab", text[19]) != NULL);
        CHECK(strspn(text, "0123456789abcdef-") == UUID_LEN);
    }
}

/* More than the counter holds within one millisecond, and a clock that is set back. */
TEST(later_ones_sort_behind_whatever_the_clock_does)
{
    struct uuid_source source             = { 0 };
    char               last[UUID_LEN + 1] = "", text[UUID_LEN + 1];

    for (int i = 0; i < 20000; i++) {
        make(&source, i < 15000 ? MOMENT : MOMENT - 3600000, text);
        CHECK(strcmp(last, text) < 0);
        memcpy(last, text, sizeof(text));
    }
}

TEST(two_sources_do_not_make_the_same)
{
    struct uuid_source a = { 0 }, b = { 0 };
    char               one[UUID_LEN + 1], other[UUID_LEN + 1];

    for (int i = 0; i < 1000; i++) {
        make(&a, MOMENT, one);
        make(&b, MOMENT, other);
        CHECK(strcmp(one, other) != 0);
    }
}

int main(void)
{
    return check_run();
}
