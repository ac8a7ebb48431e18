#include "base/log_ring.h"

#include <pthread.h>
#include <sched.h>

#include "support/check.h"

/* What the payload of record NUMBER is: any part of it tells where it belongs. */
static const char *payload_of(unsigned number)
{
    static char pattern[256 + 1024];

    if (!pattern[1])
        for (size_t i = 0; i < sizeof(pattern); i++)
            pattern[i] = (char)i;
    return pattern + number % 256;
}

static bool put(struct log_ring *ring, unsigned number, size_t len)
{
    struct log_record *record = log_ring_reserve(ring, len);

    if (!record)
        return false;
    memcpy(log_record_payload(record), payload_of(number), len);
    record->wall_ms = number;
    log_ring_commit(ring);
    return true;
}

/* The oldest record is NUMBER and whole. */
static void take(struct log_ring *ring, unsigned number, size_t len)
{
    const struct log_record *record = log_ring_peek(ring);

    CHECK(record);
    CHECK_INT(record->wall_ms, number);
    CHECK_MEM((const char *)log_record_payload(record), record->len, payload_of(number), len);
    log_ring_release(ring, record);
}

TEST(records_come_out_whole_and_in_order_wherever_the_ring_ends)
{
    struct log_ring *ring = log_ring_new(1024);

    for (unsigned number = 0; number < 5000; number++) {
        size_t len = number * 7 % 300;

        CHECK(put(ring, number, len));
        CHECK(put(ring, number + 1, 8));
        take(ring, number, len);
        take(ring, number + 1, 8);
    }
    CHECK(log_ring_is_empty(ring));
    CHECK(log_ring_peek(ring) == NULL);
    CHECK_INT(ring->dropped, 0);
    log_ring_free(ring);
}

TEST(a_full_ring_refuses_and_counts_and_loses_nothing_else)
{
    struct log_ring *ring  = log_ring_new(1024);
    unsigned         taken = 0;

    while (put(ring, taken, 40))
        taken++;
    CHECK(!put(ring, 99, 40));
    CHECK_INT(ring->dropped, 2);
    CHECK(taken >= 1024 / 72 - 1);
    for (unsigned number = 0; number < taken; number++)
        take(ring, number, 40);
    CHECK(put(ring, 5, 40));
    take(ring, 5, 40);
    log_ring_free(ring);
}

TEST(a_record_larger_than_half_a_ring_is_refused)
{
    struct log_ring *ring = log_ring_new(1024);

    CHECK(!put(ring, 0, 513));
    CHECK_INT(ring->dropped, 1);
    CHECK(put(ring, 1, 512));
    take(ring, 1, 512);
    log_ring_free(ring);
}

TEST(a_commit_tells_when_half_is_full)
{
    struct log_ring *ring = log_ring_new(1024);
    bool             full = false;

    for (int i = 0; i < 6; i++) {
        CHECK(log_ring_reserve(ring, 40));
        full = log_ring_commit(ring);
        CHECK(!full);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(log_ring_reserve(ring, 40));
        full = log_ring_commit(ring);
    }
    CHECK(full);
    log_ring_free(ring);
}

enum { RECORDS = 50000 };

static void *produce(void *arg)
{
    for (unsigned number = 0; number < RECORDS; number++)
        while (!put(arg, number, number % 100))
            sched_yield();
    return NULL;
}

TEST(two_threads_pass_every_record)
{
    struct log_ring *ring = log_ring_new(4096);
    pthread_t        thread;

    payload_of(0); /* made before there are two */
    CHECK_INT(pthread_create(&thread, NULL, produce, ring), 0);
    for (unsigned number = 0; number < RECORDS; number++) {
        while (!log_ring_peek(ring))
            sched_yield();
        take(ring, number, number % 100);
    }
    pthread_join(thread, NULL);
    CHECK(log_ring_is_empty(ring));
    log_ring_free(ring);
}

int main(void)
{
    return check_run();
}
