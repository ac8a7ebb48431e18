#include "base/hist.h"

#include <stdlib.h>

#include "support/check.h"

static struct hist *hist;

/* Half a megabyte: not for the stack. */
static struct hist *new_hist(void)
{
    struct hist *made = calloc(1, sizeof(*made));

    CHECK(made != NULL);
    return made;
}

static double off_by(uint64_t got, uint64_t want)
{
    double away = got > want ? (double)(got - want) : (double)(want - got);

    return away / (double)want;
}

TEST(an_empty_one_has_nothing_to_tell)
{
    hist = new_hist();
    CHECK_INT(hist_count(hist), 0);
    CHECK_INT(hist_percentile(hist, 50), 0);
    CHECK(hist_mean(hist) == 0 && hist_deviation(hist) == 0);
    free(hist);
}

TEST(small_values_are_kept_exactly)
{
    hist = new_hist();
    for (unsigned value = 0; value < 2048; value++)
        hist_add(hist, value);
    CHECK_INT(hist_percentile(hist, 0), 0);
    CHECK_INT(hist_percentile(hist, 50), 1023);
    CHECK_INT(hist_percentile(hist, 100), 2047);
    CHECK(hist_mean(hist) == 2047.0 / 2);
    free(hist);
}

TEST(any_value_is_read_back_within_a_thousandth)
{
    for (uint64_t value = 1; value < HIST_VALUE_MAX; value += value / 3 + 1) {
        hist = new_hist();
        hist_add(hist, value);
        CHECK(off_by(hist_percentile(hist, 50), value) <= 0.001);
        CHECK_INT(hist_mean(hist), value);
        free(hist);
    }
}

TEST(what_is_too_large_counts_as_the_largest)
{
    hist = new_hist();
    hist_add(hist, UINT64_MAX / 2);
    hist_add(hist, HIST_VALUE_MAX);
    CHECK_INT(hist_count(hist), 2);
    CHECK(off_by(hist_percentile(hist, 100), HIST_VALUE_MAX) <= 0.001);
    free(hist);
}

TEST(buckets_stand_side_by_side)
{
    for (unsigned i = 0; i + 1 < HIST_BUCKETS; i++)
        CHECK_INT(hist_bucket_high(i), hist_bucket_low(i + 1));
    CHECK_INT(hist_bucket_high(HIST_BUCKETS - 1), (uint64_t)HIST_VALUE_MAX + 1);
}

TEST(percentiles_are_those_of_the_sorted_values)
{
    hist = new_hist();
    for (unsigned i = 1; i <= 1000; i++)
        hist_add(hist, i);
    CHECK_INT(hist_percentile(hist, 99), 990);
    CHECK_INT(hist_percentile(hist, 99.9), 999);
    CHECK_INT(hist_percentile(hist, 99.99), 1000);
    CHECK(hist_deviation(hist) > 288 && hist_deviation(hist) < 289);
    free(hist);
}

TEST(what_came_since_an_earlier_look_can_be_told)
{
    struct hist *older = new_hist();

    hist = new_hist();
    hist_add(hist, 5);
    hist_merge(older, hist);
    hist_add(hist, 700);
    hist_subtract(hist, older);
    CHECK_INT(hist_count(hist), 1);
    CHECK_INT(hist_percentile(hist, 50), 700);
    CHECK_INT(hist_mean(hist), 700);
    free(hist);
    free(older);
}

int main(void)
{
    return check_run();
}
