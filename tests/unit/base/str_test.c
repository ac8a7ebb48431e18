#include "base/str.h"

#include "support/check.h"

TEST(spans_compare_by_bytes_and_length)
{
    CHECK(str_is(STR("abc"), STR("abc")));
    CHECK(!str_is(STR("abc"), STR("abd")));
    CHECK(!str_is(STR("abc"), STR("ab")));
    CHECK(!str_is(STR("a\0b"), STR("a\0c")));
    CHECK(str_is(STR_NONE, STR("")));
}

TEST(case_is_ignored_for_ascii_letters_alone)
{
    CHECK(str_is_nocase(STR("Content-Type"), STR("cONTENT-tYPE")));
    CHECK(!str_is_nocase(STR("a\0b"), STR("A\0c")));
    CHECK(!str_is_nocase(STR("["), STR("{")));
    CHECK(!str_is_nocase(STR("\xc4"), STR("\xe4")));
    CHECK(!str_is_nocase(STR("ab"), STR("abc")));
    CHECK(str_is_nocase(STR_NONE, STR("")));
}

TEST(starts_and_ends_may_be_the_whole_or_nothing)
{
    CHECK(str_starts_with(STR("/a/b"), STR("/a")));
    CHECK(str_starts_with(STR("/a"), STR("/a")));
    CHECK(str_starts_with(STR_NONE, STR_NONE));
    CHECK(!str_starts_with(STR("/a"), STR("/a/")));
    CHECK(str_ends_with(STR("x.lua"), STR(".lua")));
    CHECK(str_ends_with(STR("x.lua"), STR("")));
    CHECK(!str_ends_with(STR("lua"), STR(".lua")));
    CHECK(!str_ends_with(STR("x.lub"), STR(".lua")));
}

TEST(find_gives_the_length_when_there_is_none)
{
    CHECK_INT(str_find(STR("a=b=c"), '='), 1);
    CHECK_INT(str_find(STR("abc"), '='), 3);
    CHECK_INT(str_find(STR_NONE, '='), 0);
    CHECK(str_is(str_from(STR("abc"), 1), STR("bc")));
    CHECK(str_is(str_from(STR("abc"), 3), STR("")));
}

TEST(trim_takes_blanks_and_tabs_and_nothing_else)
{
    CHECK(str_is(str_trim(STR(" \t a b\t ")), STR("a b")));
    CHECK(str_is(str_trim(STR("\r\na\n")), STR("\r\na\n")));
    CHECK(str_is(str_trim(STR(" \t ")), STR("")));
    CHECK(str_is(str_trim(STR_NONE), STR("")));
}

TEST(next_cuts_a_list_into_trimmed_elements)
{
    struct str rest = STR(" gzip ,, br;q=1,"), element;

    CHECK(str_next(&rest, ',', &element));
    CHECK(str_is(element, STR("gzip")));
    CHECK(str_next(&rest, ',', &element));
    CHECK(str_is(element, STR("")));
    CHECK(str_next(&rest, ',', &element));
    CHECK(str_is(element, STR("br;q=1")));
    CHECK(!str_next(&rest, ',', &element));
}

TEST(numbers_are_digits_up_to_a_maximum)
{
    uint64_t value = 99;

    CHECK(str_to_u64(STR("0"), UINT64_MAX, &value) && value == 0);
    CHECK(str_to_u64(STR("00042"), 100, &value) && value == 42);
    CHECK(str_to_u64(STR("100"), 100, &value) && value == 100);
    CHECK(str_to_u64(STR("18446744073709551615"), UINT64_MAX, &value) && value == UINT64_MAX);
}

TEST(what_is_no_number_is_refused)
{
    static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x1", "1e1", "101", "1000" };
    uint64_t                 value = 99;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!str_to_u64(str_of(bad[i]), 100, &value));
    CHECK(!str_to_u64(STR("5"), 4, &value)); /* a maximum below the digit itself */
    CHECK(!str_to_u64(STR("18446744073709551616"), UINT64_MAX, &value));
    CHECK_INT(value, 99);
}

int main(void)
{
    return check_run();
}
