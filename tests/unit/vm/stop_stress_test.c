/* Many stops at random moments, in two VMs of two threads at once. SRV_STOPS is how many in all; the
 * default keeps an everyday run short. */
#include "vm/stop.h"

#include "base/compiler.h"
#include "support/runaway.h"

enum { THREADS = 2, STOPS = 2000, STOPS_MAX = 1000000, CHECK_EVERY = 50, DELAY_US_MAX = 400 };

struct half {
    pthread_t   thread;
    unsigned    seed, stops;
    unsigned    cancelled, broken; /* what became of them */
    const char *last;              /* the kind in hand */
};

/* In a thread, where a failed CHECK() cannot jump. */
static bool is_usable(struct fixture *f)
{
    lua_gc(f->vm->L, LUA_GCCOLLECT, 0);
    fixture_start(f, RUNAWAY_CHECK);
    fixture_run(f);
    return strcmp(f->text, "usable") == 0;
}

static void stop_one(struct half *half, struct fixture *f, struct stopper *stopper)
{
    const struct runaway *runaway = &RUNAWAYS[(unsigned)rand_r(&half->seed) % ARRAY_LEN(RUNAWAYS)];

    half->last        = runaway->name;
    stopper->delay_us = (unsigned)rand_r(&half->seed) % DELAY_US_MAX;
    stopper->pause_us = 100 + (unsigned)rand_r(&half->seed) % 400;
    stopper_run(stopper, f, runaway->code);
}

static void *stop_many(void *arg)
{
    struct half   *half = arg;
    struct fixture f;
    struct stopper stopper;

    fixture_open(&f);
    fixture_run_lua(f.vm->L, RUNAWAY_CANARY);
    stopper_open(&stopper, &f);
    for (unsigned i = 1; i <= half->stops; i++) {
        stop_one(half, &f, &stopper);
        if (i % CHECK_EVERY == 0)
            half->broken += !is_usable(&f);
    }
    stopper_close(&stopper);
    half->cancelled = f.cancelled;
    fixture_close(&f);
    return NULL;
}

static unsigned stops_wanted(void)
{
    const char *text  = getenv("SRV_STOPS");
    long        count = text ? strtol(text, NULL, 10) : STOPS;

    return count > 0 && count < STOPS_MAX ? (unsigned)count : STOPS;
}

TEST(stops_at_any_moment_leave_two_states_in_two_threads_whole)
{
    struct half halves[THREADS];

#if defined(__SANITIZE_THREAD__) || !defined(SRV_CHECKHOOK)
    SKIP("needs signals while Lua runs, and hooks in compiled code");
#endif
    for (unsigned i = 0; i < THREADS; i++) {
        halves[i] = (struct half){ .seed = i + 1, .stops = stops_wanted() / THREADS };
        CHECK(pthread_create(&halves[i].thread, NULL, stop_many, &halves[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(halves[i].thread, NULL);
        CHECK_INT(halves[i].cancelled, halves[i].stops);
        CHECK_INT(halves[i].broken, 0);
    }
}

int main(void)
{
    return check_run();
}
