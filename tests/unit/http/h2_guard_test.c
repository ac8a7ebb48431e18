#include "http/h2_guard.h"

#include "support/check.h"

static struct h2_guard guard;

/* How many of these are borne in a row. */
static unsigned borne(enum h2_nuisance nuisance, uint64_t now_ms)
{
    unsigned count = 0;

    while (count < 10 * H2_GUARD_BURST && h2_guard_spend(&guard, nuisance, now_ms))
        count++;
    return count;
}

TEST(a_burst_is_borne_and_no_more)
{
    h2_guard_init(&guard, 5000);
    CHECK_INT(borne(H2_RESET, 5000), H2_GUARD_BURST);
    CHECK_STR(guard.why, "too many streams were reset");
    CHECK_INT(borne(H2_PING, 5000), 0);
    CHECK_STR(guard.why, "too many streams were reset"); /* the first reason stays */
}

TEST(patience_comes_back_slowly_and_not_beyond_the_burst)
{
    h2_guard_init(&guard, 0);
    borne(H2_RESET, 0);
    CHECK_INT(borne(H2_RESET, 1000), H2_GUARD_PER_SECOND);
    CHECK_INT(borne(H2_RESET, 1010), 0);
    CHECK_INT(borne(H2_RESET, 1100), 3); /* also what came in pieces */
    CHECK_INT(borne(H2_RESET, UINT64_C(1) << 40), H2_GUARD_BURST);
}

TEST(pings_and_windows_that_follow_our_frames_are_free)
{
    h2_guard_init(&guard, 0);
    for (unsigned i = 0; i < 5; i++)
        h2_guard_earn(&guard);
    CHECK_INT(borne(H2_WINDOW, 0), H2_GUARD_BURST + 10);
    for (unsigned i = 0; i < 100000; i++)
        h2_guard_earn(&guard);
    CHECK(borne(H2_PING, 0) <= H2_GUARD_FREE_MAX + 1); /* they are not saved up without end */
    h2_guard_earn(&guard);
    CHECK_INT(borne(H2_RESET, 0), 0);
}

int main(void)
{
    return check_run();
}
