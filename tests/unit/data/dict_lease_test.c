#include "data/dict_lease.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "data/dict.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "support/check.h"

enum { NOW = 1000000, TERM = 1000 };

static struct dicts *dicts;
static struct dict  *dict;
static struct loop  *loop;

static void open_all(void)
{
    struct err err;

    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(dicts_open(&dicts, &err), 0);
    CHECK_INT(dicts_get(&dict, dicts, STR("test"), DICT_BYTES_MIN, &err), 0);
}

static void close_all(void)
{
    inbox_close(loop_inbox(loop));
    dicts_close(dicts);
    loop_close(loop);
}

struct waiting {
    struct dict_waiter waiter;
    unsigned           done, dropped;
};

static void on_done(struct dict_waiter *waiter)
{
    container_of(waiter, struct waiting, waiter)->done++;
    loop_break(loop);
}

static void on_drop(struct dict_waiter *waiter)
{
    container_of(waiter, struct waiting, waiter)->dropped++;
    loop_break(loop);
}

static struct waiting new_waiting(void)
{
    return (
        struct waiting){ .waiter = { .home = loop_inbox(loop), .done = on_done, .drop = on_drop } };
}

static void set_one(double n)
{
    struct dict_value value = { .is_number = true, .number = n };

    CHECK_INT(dict_set(dict, STR("k"), &value, 0, NOW), 0);
}

TEST(each_kind_of_change_wakes_who_waits_for_the_key)
{
    struct dict_value one = { .is_number = true, .number = 1 };
    struct waiting    waiting, other;
    double            sum;

    open_all();
    other = new_waiting();
    CHECK_INT(dict_wait(dict, &other.waiter, STR("other"), NOW), 0);
    for (unsigned way = 0; way < 4; way++) {
        waiting = new_waiting();
        CHECK_INT(dict_wait(dict, &waiting.waiter, STR("k"), NOW), 0);
        switch (way) {
        case 0: set_one(0); break;
        case 1: CHECK_INT(dict_incr(dict, STR("k"), 1, 0, NOW, &sum), 0); break;
        case 2: CHECK_INT(dict_cas(dict, STR("k"), &one, &one, NOW), 0); break;
        default: CHECK(dict_delete(dict, STR("k"), NOW)); break;
        }
        loop_run(loop);
        CHECK_INT(waiting.done, 1);
    }
    CHECK_INT(other.done, 0);
    CHECK(dict_unwait(&other.waiter));
    close_all();
}

TEST(a_wait_that_knows_the_value_misses_no_change_before_it)
{
    struct dict_value one     = { .is_number = true, .number = 1 };
    struct waiting    waiting = { 0 };

    open_all();
    waiting = new_waiting();
    set_one(2);
    CHECK_INT(dict_wait_unless(dict, &waiting.waiter, STR("k"), &one, NOW), ERR_EXISTS);
    CHECK_INT(dict_wait_unless(dict, &waiting.waiter, STR("k"), NULL, NOW), ERR_EXISTS);
    one.number = 2;
    CHECK_INT(dict_wait_unless(dict, &waiting.waiter, STR("k"), &one, NOW), 0);
    CHECK(dict_unwait(&waiting.waiter));
    close_all();
}

TEST(who_gives_up_while_the_news_is_on_its_way_is_dropped)
{
    struct waiting waiting;

    open_all();
    waiting = new_waiting();
    CHECK_INT(dict_wait(dict, &waiting.waiter, STR("k"), NOW), 0);
    set_one(1);
    CHECK(!dict_unwait(&waiting.waiter));
    loop_run(loop);
    CHECK_INT(waiting.done, 0);
    CHECK_INT(waiting.dropped, 1);
    close_all();
}

TEST(waiters_are_bounded)
{
    struct waiting *many = calloc(DICT_WAITERS_MAX + 1, sizeof(*many));

    open_all();
    for (unsigned i = 0; i <= DICT_WAITERS_MAX; i++) {
        many[i] = new_waiting();
        CHECK_INT(dict_wait(dict, &many[i].waiter, STR("k"), NOW),
                  i < DICT_WAITERS_MAX ? 0 : ERR_BUSY);
    }
    for (unsigned i = 0; i < DICT_WAITERS_MAX; i++)
        CHECK(dict_unwait(&many[i].waiter));
    free(many);
    close_all();
}

/* --- leases --------------------------------------------------------------------------------------- */

static struct dict_lease *lease;
static uint64_t           wait_ms;

static enum dict_claim claim_at(struct waiting *waiting, uint64_t now_ms)
{
    return dict_claim(dict, &waiting->waiter, STR("k"), TERM, now_ms, &lease, &wait_ms);
}

TEST(one_computes_and_the_value_wakes_all_others)
{
    struct waiting a, b, c;

    open_all();
    a = new_waiting();
    b = new_waiting();
    c = new_waiting();
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    CHECK_INT(claim_at(&b, NOW + 10), DICT_CLAIM_WAITS);
    CHECK_INT(wait_ms, TERM - 10);
    CHECK_INT(claim_at(&c, NOW), DICT_CLAIM_WAITS);
    CHECK(dict_lease_holds(lease));
    set_one(1);
    dict_lease_end(lease);
    while (b.done + c.done < 2)
        loop_run(loop);
    CHECK(!b.waiter.lease && !c.waiter.lease);
    CHECK_INT(claim_at(&b, NOW), DICT_CLAIM_VALUE);
    close_all();
}

TEST(a_lease_given_back_without_a_value_passes_to_one)
{
    struct waiting a, b, c;

    open_all();
    a = new_waiting();
    b = new_waiting();
    c = new_waiting();
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    CHECK_INT(claim_at(&b, NOW), DICT_CLAIM_WAITS);
    CHECK_INT(claim_at(&c, NOW), DICT_CLAIM_WAITS);
    dict_lease_end(lease);
    loop_run(loop);
    CHECK_INT(b.done, 1);
    CHECK_INT(c.done, 0);
    CHECK(b.waiter.lease != NULL);
    CHECK(dict_lease_take(b.waiter.lease, TERM, NOW));
    dict_lease_end(b.waiter.lease);
    loop_run(loop);
    CHECK(c.waiter.lease != NULL);
    dict_lease_end(c.waiter.lease);
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    dict_lease_end(lease);
    close_all();
}

TEST(a_lease_on_its_way_to_one_who_gave_up_goes_on_to_the_next)
{
    struct waiting a, b, c;

    open_all();
    a = new_waiting();
    b = new_waiting();
    c = new_waiting();
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    CHECK_INT(claim_at(&b, NOW), DICT_CLAIM_WAITS);
    CHECK_INT(claim_at(&c, NOW), DICT_CLAIM_WAITS);
    dict_lease_end(lease);
    CHECK(!dict_unwait(&b.waiter));
    while (!c.done)
        loop_run(loop);
    CHECK_INT(b.dropped, 1);
    CHECK(c.waiter.lease != NULL);
    dict_lease_end(c.waiter.lease);
    close_all();
}

TEST(a_lease_sent_to_a_closed_inbox_goes_on_to_the_next)
{
    struct loop   *gone;
    struct waiting a, b, c;
    struct err     err;

    open_all();
    CHECK_INT(loop_open(&gone, &err), 0);
    a             = new_waiting();
    b             = new_waiting();
    b.waiter.home = loop_inbox(gone);
    c             = new_waiting();
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    CHECK_INT(claim_at(&b, NOW), DICT_CLAIM_WAITS);
    CHECK_INT(claim_at(&c, NOW), DICT_CLAIM_WAITS);
    inbox_close(loop_inbox(gone));
    dict_lease_end(lease);
    while (!c.done)
        loop_run(loop);
    CHECK_INT(b.dropped, 1);
    CHECK(c.waiter.lease != NULL);
    dict_lease_end(c.waiter.lease);
    loop_close(gone);
    close_all();
}

TEST(a_lease_held_beyond_its_term_is_taken_away)
{
    struct waiting     a, b, c;
    struct dict_lease *first;

    open_all();
    a = new_waiting();
    b = new_waiting();
    c = new_waiting();
    CHECK_INT(claim_at(&a, NOW), DICT_CLAIM_MINE);
    first = lease;
    CHECK_INT(claim_at(&b, NOW + TERM - 1), DICT_CLAIM_WAITS);
    CHECK_INT(claim_at(&c, NOW + TERM), DICT_CLAIM_MINE);
    CHECK(!dict_lease_holds(first));
    dict_lease_end(first); /* changes nothing */
    CHECK_INT(b.done, 0);
    dict_lease_end(lease);
    loop_run(loop);
    CHECK(b.waiter.lease != NULL);
    dict_lease_end(b.waiter.lease);
    close_all();
}

/* --- threads -------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 500 };

static atomic_uint computing, computed;

struct seat {
    struct loop   *loop;
    struct waiting waiting;
};

static void on_seat_done(struct dict_waiter *waiter)
{
    loop_break(
        container_of(container_of(waiter, struct waiting, waiter), struct seat, waiting)->loop);
}

/* Claims, computes, deletes, again and again: never two at once. */
static void compute(void *arg)
{
    struct seat *seat = arg;

    for (unsigned i = 0; i < ROUNDS;) {
        struct dict_lease *own = NULL;
        uint64_t           ms;
        enum dict_claim    claim;

        seat->waiting.waiter = (struct dict_waiter){ .home = loop_inbox(seat->loop),
                                                     .done = on_seat_done,
                                                     .drop = on_seat_done };
        claim = dict_claim(dict, &seat->waiting.waiter, STR("k"), TERM, NOW, &own, &ms);
        if (claim == DICT_CLAIM_WAITS) {
            loop_run(seat->loop);
            own = seat->waiting.waiter.lease;
        }
        if (!own)
            continue;
        if (atomic_fetch_add(&computing, 1) != 0)
            abort();
        atomic_fetch_add(&computed, 1);
        atomic_fetch_sub(&computing, 1);
        dict_lease_end(own);
        i++;
    }
}

TEST(of_many_threads_one_computes_at_a_time_and_none_hangs)
{
    struct thread threads[THREADS];
    struct seat   seats[THREADS] = { 0 };
    struct err    err;

    open_all();
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(loop_open(&seats[i].loop, &err), 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(thread_start(&threads[i], "lease", 0, compute, &seats[i], &err), 0);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    for (unsigned i = 0; i < THREADS; i++)
        loop_close(seats[i].loop); /* by now nobody is inside inbox_post() */
    CHECK_INT(atomic_load(&computed), THREADS * ROUNDS);
    close_all();
}

int main(void)
{
    return check_run();
}
