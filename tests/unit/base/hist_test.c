#include "base/hist.h"

#include <math.h>

#include "support/check.h"

static struct hist hist, other;

TEST(an_empty_histogram_answers_zero)
{
    hist_init(&hist);
    CHECK_INT(hist_at(&hist, 0.5), 0);
    CHECK_INT(hist_at(&hist, 1), 0);
    CHECK(hist_mean(&hist) == 0);
    CHECK(hist_deviation(&hist) == 0);
}

TEST(small_values_are_exact)
{
    hist_init(&hist);
    for (uint64_t value = 1; value <= 100; value++)
        hist_add(&hist, value);
    CHECK_INT(hist_at(&hist, 0), 1);
    CHECK_INT(hist_at(&hist, 0.01), 1);
    CHECK_INT(hist_at(&hist, 0.5), 50);
    CHECK_INT(hist_at(&hist, 0.99), 99);
    CHECK_INT(hist_at(&hist, 1), 100);
    CHECK(fabs(hist_mean(&hist) - 50.5) < 1e-9);
    CHECK(fabs(hist_deviation(&hist) - sqrt(833.25)) < 1e-6);
}

TEST(every_value_is_known_to_a_sixty_fourth)
{
    for (uint64_t value = 1; value < UINT64_MAX / 3; value = value * 3 + 1) {
        uint64_t got;

        hist_init(&hist);
        hist_add(&hist, value);
        hist_add(&hist, UINT64_MAX); /* so that max does not answer for the bucket */
        got = hist_at(&hist, 0.5);
        CHECK(got >= value && got - value <= value / 64);
    }
    CHECK(hist_at(&hist, 1) == UINT64_MAX);
}

TEST(a_quantile_is_never_above_the_largest_value)
{
    hist_init(&hist);
    hist_add(&hist, 1000001);
    CHECK_INT(hist_at(&hist, 0.999), 1000001);
    CHECK_INT(hist.min, 1000001);
}

TEST(merged_histograms_are_the_histogram_of_all)
{
    hist_init(&hist);
    hist_init(&other);
    hist_add_many(&hist, 10, 90);
    hist_add_many(&other, 5000, 10);
    hist_add_many(&other, 7, 0);
    hist_merge(&hist, &other);
    CHECK_INT(hist.count, 100);
    CHECK_INT(hist.min, 10);
    CHECK_INT(hist.max, 5000);
    CHECK_INT(hist_at(&hist, 0.9), 10);
    CHECK_INT(hist_at(&hist, 0.91), 5000);
}

int main(void)
{
    return check_run();
}
