/* tests/support/load_bed.h - a load for a test: planned, run to its end, its sums looked at on the way. */
#ifndef TESTS_SUPPORT_LOAD_BED_H
#define TESTS_SUPPORT_LOAD_BED_H

#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "base/err.h"
#include "load/load.h"
#include "support/check.h"

enum { PATIENCE_LOOKS = 20000 /* of a millisecond */ };

/* What a test changes before it runs. */
struct bed {
    struct load_origin  origin;
    struct load_request requests[2];
    unsigned            wheel[4];
    struct load_plan    plan;
    struct hist         latency, service;
    struct load_totals  totals;
    uint64_t            answered, failed;
};

static struct bed bed;

static inline void on_over(void *arg)
{
    sem_post(arg);
}

/* For a server of this machine on PORT; what is sent is the test's to say. */
static inline void bed_plan(uint16_t port)
{
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    memset(&bed, 0, sizeof(bed));
    CHECK_INT(addr_parse_host(&bed.origin.addr, "127.0.0.1", port, &err), 0);
    bed.plan = (struct load_plan){
        .origins       = &bed.origin,
        .requests      = bed.requests,
        .wheel         = bed.wheel,
        .origin_count  = 1,
        .request_count = 2,
        .wheel_len     = 1,
        .threads       = 1,
        .connections   = 1,
        .pipelining    = 1,
        .timeout_ms    = 10000,
    };
}

/* Sums, and the identity that holds for each moment. */
static inline void look(struct load *load)
{
    bed.answered = bed.failed = 0;
    memset(&bed.latency, 0, sizeof(bed.latency));
    memset(&bed.service, 0, sizeof(bed.service));
    bed.totals = (struct load_totals){ .latency = &bed.latency, .service = &bed.service };
    load_read(load, &bed.totals);
    for (unsigned i = 0; i < LOAD_STATUSES; i++)
        bed.answered += bed.totals.statuses[i];
    for (unsigned i = 0; i < LOAD_FAULTS; i++)
        bed.failed += bed.totals.faults[i];
    CHECK(bed.answered + bed.failed <= bed.totals.sent);
}

static inline uint64_t under_way(void)
{
    return bed.totals.sent - bed.answered - bed.failed;
}

/* Looks each millisecond until it is over. */
static inline void await(struct load *load, sem_t *over)
{
    for (int looks = 0; sem_trywait(over) != 0; looks++) {
        CHECK(looks < PATIENCE_LOOKS);
        look(load);
        nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
    }
    look(load);
    CHECK(under_way() <= (uint64_t)bed.plan.connections * bed.plan.pipelining);
}

/* What it came to nothing for is in FAILURE (base/err.h); NULL: it must not. */
static inline void run_to_failure(struct err *failure)
{
    struct load *load;
    struct err   err;
    sem_t        over;

    sem_init(&over, 0, 0);
    CHECK_INT(load_start(&load, &bed.plan, on_over, &over, &err), 0);
    await(load, &over);
    CHECK_INT(load_failure(load, failure) != 0, failure != NULL);
    load_free(load);
}

static inline void run_alone(void)
{
    run_to_failure(NULL);
}

#endif
