#include "ev/wheel.h"

#include <stdlib.h>

#include "base/clock.h"
#include "ev/timer.h"
#include "support/check.h"

static void add_at(struct wheel *wheel, struct timer *timer, uint64_t due_ns)
{
    timer_init(timer, NULL);
    timer->due_ns = due_ns;
    wheel_add(wheel, timer);
}

static struct timer *next_ripe(struct wheel *wheel)
{
    struct list *node = list_take_first(&wheel->ripe);

    return node ? container_of(node, struct timer, link) : NULL;
}

TEST(an_empty_wheel_never_wants_to_be_looked_at)
{
    struct wheel wheel;

    wheel_init(&wheel, 12345);
    CHECK(wheel_is_empty(&wheel));
    CHECK(wheel_next_ns(&wheel) == WHEEL_NEVER);
    wheel_advance(&wheel, WHEEL_NEVER - 1);
    CHECK(wheel_is_empty(&wheel));
}

TEST(a_near_timer_is_ripe_to_the_nanosecond)
{
    struct wheel wheel;
    struct timer timer;

    wheel_init(&wheel, 0);
    add_at(&wheel, &timer, 1500001);
    CHECK(wheel_next_ns(&wheel) == 1500001);
    wheel_advance(&wheel, 1500000);
    CHECK(next_ripe(&wheel) == NULL);
    wheel_advance(&wheel, 1500001);
    CHECK(next_ripe(&wheel) == &timer);
    CHECK(wheel_is_empty(&wheel));
}

TEST(timers_of_one_millisecond_ripen_together_in_the_order_of_their_start)
{
    struct wheel wheel;
    struct timer late, early;

    wheel_init(&wheel, 0);
    add_at(&wheel, &late, 5900000);
    add_at(&wheel, &early, 5100000);
    wheel_advance(&wheel, 5899999);
    CHECK(next_ripe(&wheel) == NULL);
    wheel_advance(&wheel, 5900000);
    CHECK(next_ripe(&wheel) == &late);
    CHECK(next_ripe(&wheel) == &early);
}

TEST(order_of_start_survives_being_dealt_out_from_above)
{
    struct wheel wheel;
    struct timer first, second;

    wheel_init(&wheel, 0);
    add_at(&wheel, &first, UINT64_C(100) * NS_PER_MS); /* level 1 */
    wheel_advance(&wheel, UINT64_C(70) * NS_PER_MS);
    add_at(&wheel, &second, UINT64_C(100) * NS_PER_MS); /* level 0 now */
    wheel_advance(&wheel, UINT64_C(100) * NS_PER_MS);
    CHECK(next_ripe(&wheel) == &first);
    CHECK(next_ripe(&wheel) == &second);
}

TEST(removing_the_last_timer_of_a_slot_empties_it)
{
    struct wheel wheel;
    struct timer a, b;

    wheel_init(&wheel, 0);
    add_at(&wheel, &a, UINT64_C(9000) * NS_PER_MS);
    add_at(&wheel, &b, UINT64_C(9000) * NS_PER_MS);
    wheel_remove(&wheel, &a);
    CHECK(wheel_next_ns(&wheel) != WHEEL_NEVER);
    wheel_remove(&wheel, &b);
    wheel_remove(&wheel, &b);
    CHECK(wheel_is_empty(&wheel));
}

TEST(a_ripe_timer_can_still_be_removed)
{
    struct wheel wheel;
    struct timer a, b;

    wheel_init(&wheel, 0);
    add_at(&wheel, &a, NS_PER_MS);
    add_at(&wheel, &b, NS_PER_MS);
    wheel_advance(&wheel, NS_PER_MS);
    CHECK(next_ripe(&wheel) == &a);
    wheel_remove(&wheel, &b);
    CHECK(next_ripe(&wheel) == NULL);
    CHECK(wheel_is_empty(&wheel));
}

TEST(soon_waits_for_the_next_ripening_and_for_no_clock)
{
    struct wheel wheel;
    struct timer timer;

    wheel_init(&wheel, 0);
    timer_init(&timer, NULL);
    wheel_add_soon(&wheel, &timer);
    wheel_advance(&wheel, NS_PER_MS);
    CHECK(next_ripe(&wheel) == NULL);
    wheel_ripen_soon(&wheel);
    CHECK(next_ripe(&wheel) == &timer);
}

TEST(the_farthest_time_a_number_can_hold_fits)
{
    struct wheel wheel;
    struct timer timer;

    wheel_init(&wheel, 1);
    add_at(&wheel, &timer, UINT64_MAX - 1);
    wheel_advance(&wheel, UINT64_MAX - 2);
    CHECK(next_ripe(&wheel) == NULL);
    wheel_advance(&wheel, UINT64_MAX - 1);
    CHECK(next_ripe(&wheel) == &timer);
}

/* --- against the plain truth ---------------------------------------------------------------- */

enum { CROWD = 400, STEPS = 20000 };

struct truth {
    struct timer timer;
    bool         running;
};

static struct truth crowd[CROWD];

/* From under a millisecond to weeks, so that each level in use is crossed. */
static uint64_t random_delay_ns(void)
{
    unsigned bits = (unsigned)rand() % 52;

    return ((uint64_t)rand() << 22 ^ (uint64_t)rand()) & ((UINT64_C(2) << bits) - 1);
}

static void start_one(struct wheel *wheel, uint64_t now_ns)
{
    struct truth *truth = &crowd[rand() % CROWD];

    wheel_remove(wheel, &truth->timer);
    truth->timer.due_ns = now_ns + random_delay_ns();
    truth->running      = true;
    wheel_add(wheel, &truth->timer);
}

static void stop_one(struct wheel *wheel)
{
    struct truth *truth = &crowd[rand() % CROWD];

    wheel_remove(wheel, &truth->timer);
    truth->running = false;
}

static uint64_t first_due_ns(void)
{
    uint64_t first = WHEEL_NEVER;

    for (unsigned i = 0; i < CROWD; i++)
        if (crowd[i].running && crowd[i].timer.due_ns < first)
            first = crowd[i].timer.due_ns;
    return first;
}

static void check_ripe(struct wheel *wheel, uint64_t now_ns)
{
    struct timer *timer;
    uint64_t      last_ms = 0;

    while ((timer = next_ripe(wheel))) {
        CHECK(timer->due_ns <= now_ns);
        CHECK(timer->due_ns / NS_PER_MS >= last_ms);
        last_ms                                           = timer->due_ns / NS_PER_MS;
        container_of(timer, struct truth, timer)->running = false;
    }
    for (unsigned i = 0; i < CROWD; i++)
        CHECK(!crowd[i].running || crowd[i].timer.due_ns + NS_PER_MS > now_ns);
}

TEST(no_timer_is_early_none_more_than_a_millisecond_late_in_a_random_life)
{
    struct wheel wheel;
    uint64_t     now = UINT64_C(987654321987);

    srand(7);
    wheel_init(&wheel, now);
    for (unsigned i = 0; i < CROWD; i++)
        timer_init(&crowd[i].timer, NULL);
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t next;

        start_one(&wheel, now);
        start_one(&wheel, now);
        if (rand() % 3 == 0)
            stop_one(&wheel);
        next = wheel_next_ns(&wheel);
        CHECK(next == WHEEL_NEVER || next < first_due_ns() + NS_PER_MS);
        if (next != WHEEL_NEVER && rand() % 2 && next > now)
            now = next;
        else
            now += random_delay_ns() >> 20;
        wheel_advance(&wheel, now);
        check_ripe(&wheel, now);
    }
    for (unsigned i = 0; i < CROWD; i++)
        wheel_remove(&wheel, &crowd[i].timer);
    CHECK(wheel_is_empty(&wheel));
}

int main(void)
{
    return check_run();
}
