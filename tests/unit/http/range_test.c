#include "http/range.h"

#include "support/check.h"

static struct range ranges[RANGE_COUNT_MAX];
static unsigned     count;

static enum range_verdict parse(const char *value, uint64_t size)
{
    return range_parse(str_of(value), size, ranges, &count);
}

#define CHECK_ONE(value, size, first_, last_)                                                      \
    do {                                                                                           \
        CHECK_INT(parse(value, size), RANGE_PARTIAL);                                              \
        CHECK_INT(count, 1);                                                                       \
        CHECK_INT(ranges[0].first, first_);                                                        \
        CHECK_INT(ranges[0].last, last_);                                                          \
    } while (0)

TEST(one_range_in_its_three_forms)
{
    CHECK_ONE("bytes=0-3", 10, 0, 3);
    CHECK_ONE("bytes=9-", 10, 9, 9);
    CHECK_ONE("bytes=-3", 10, 7, 9);
    CHECK_ONE("Bytes= 0-0 ", 10, 0, 0);
}

TEST(ends_are_cut_to_the_size)
{
    CHECK_ONE("bytes=0-999", 10, 0, 9);
    CHECK_ONE("bytes=-999", 10, 0, 9);
    CHECK_ONE("bytes=5-18446744073709551615", 10, 5, 9);
    CHECK_ONE("bytes=5-99999999999999999999999", 10, 5, 9);
    CHECK_ONE("bytes=-99999999999999999999999", 10, 0, 9);
}

TEST(what_lies_behind_the_end_is_unsatisfiable)
{
    CHECK_INT(parse("bytes=10-", 10), RANGE_UNSATISFIABLE);
    CHECK_INT(parse("bytes=20-30", 10), RANGE_UNSATISFIABLE);
    CHECK_INT(parse("bytes=-0", 10), RANGE_UNSATISFIABLE);
    CHECK_INT(parse("bytes=0-", 0), RANGE_UNSATISFIABLE);
    CHECK_INT(parse("bytes=18446744073709551616-", 10), RANGE_UNSATISFIABLE);
    CHECK_ONE("bytes=20-30,1-2", 10, 1, 2);
}

TEST(what_is_malformed_is_ignored)
{
    CHECK_INT(parse("", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=,", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes", 10), RANGE_IGNORE);
    CHECK_INT(parse("lines=0-3", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=-", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=a-b", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=3-1", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=0-1-2", 10), RANGE_IGNORE);
    CHECK_INT(parse("bytes=0-3,x", 10), RANGE_IGNORE);
}

TEST(the_end_of_an_empty_body_is_all_of_it)
{
    CHECK_INT(parse("bytes=-5", 0), RANGE_IGNORE);
}

TEST(ranges_that_touch_are_joined)
{
    CHECK_ONE("bytes=0-5,3-9", 10, 0, 9);
    CHECK_ONE("bytes=0-4,5-9", 10, 0, 9);
    CHECK_ONE("bytes=5-9,0-4", 10, 0, 9);
    CHECK_ONE("bytes=0-,0-,0-", 10, 0, 9);
    CHECK_ONE("bytes=0-1,4-5,8-9,1-8", 10, 0, 9);
    CHECK_INT(parse("bytes=6-7,0-1,2-3,8-", 20), RANGE_PARTIAL);
    CHECK_INT(count, 2);
    CHECK_INT(ranges[0].first, 6);
    CHECK_INT(ranges[0].last, 19);
    CHECK_INT(ranges[1].first, 0);
    CHECK_INT(ranges[1].last, 3);
}

TEST(several_ranges_keep_their_order)
{
    CHECK_INT(parse("bytes=5-6,0-1, ,-1", 10), RANGE_PARTIAL);
    CHECK_INT(count, 3);
    CHECK_INT(ranges[0].first, 5);
    CHECK_INT(ranges[1].first, 0);
    CHECK_INT(ranges[2].first, 9);
}

TEST(ranges_that_ask_for_too_much_are_ignored)
{
    CHECK_INT(parse("bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,"
                    "26-26,28-28,30-30",
                    100),
              RANGE_PARTIAL);
    CHECK_INT(count, RANGE_COUNT_MAX);
    CHECK_INT(parse("bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,"
                    "26-26,28-28,30-30,32-32",
                    100),
              RANGE_IGNORE);
}

int main(void)
{
    return check_run();
}
