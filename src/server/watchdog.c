/* A turn is known by the moment at which it began: the loop's heartbeat is that time, or zero
 * while it sleeps. A slice is known by its turn and the scheduler's count of slices. */
#include "server/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "vm/sched.h"

struct slot {
    struct watched watched;

    uint64_t late_turn; /* the turn that late() was called for; 0: not late */

    uint64_t turn; /* as seen at the last look */
    uint64_t slices;
    uint64_t slice_since_ns;
    bool     warned;    /* of this slice */
    bool     unstopped; /* and told that it does not end */
};

struct watchdog {
    const struct watchdog_ops *ops;
    void                      *arg;
    struct watchdog_limits     limits;

    struct thread   thread;
    pthread_mutex_t lock;
    pthread_cond_t  closing_set;
    bool            closing;

    uint64_t last_look_ns;
    bool     skipped; /* the last look */

    unsigned    count;
    struct slot slots[];
};

/* --- one worker ----------------------------------------------------------------------------- */

static void look_at_turn(struct watchdog *dog, unsigned index, uint64_t turn, uint64_t now)
{
    struct slot *slot = &dog->slots[index];

    if (slot->late_turn && turn != slot->late_turn) {
        if (dog->ops->back)
            dog->ops->back(index, (now - slot->late_turn) / NS_PER_MS, dog->arg);
        slot->late_turn = 0;
    }
    if (!slot->late_turn && turn && now >= turn + (uint64_t)WATCHDOG_LATE_MS * NS_PER_MS) {
        slot->late_turn = turn;
        if (dog->ops->late)
            dog->ops->late(index, dog->arg);
    }
}

static uint64_t count_slices(const struct slot *slot)
{
    return slot->watched.sched ? sched_slices(slot->watched.sched) : 0;
}

/* When a slice of several began is not known: it is counted from the first look that saw it. */
static void begin_slice(struct slot *slot, uint64_t turn, uint64_t slices, uint64_t now)
{
    slot->turn           = turn;
    slot->slices         = slices;
    slot->slice_since_ns = slot->watched.sched ? now : turn;
    slot->warned         = false;
    slot->unstopped      = false;
}

/* So far; 0: no slice lasts. */
static uint64_t slice_ms(const struct slot *slot, uint64_t now)
{
    return slot->turn ? (now - slot->slice_since_ns) / NS_PER_MS : 0;
}

static void warn_of_slice(struct watchdog *dog, unsigned index, uint64_t ms)
{
    uint64_t warn_ms = dog->limits.warn_ms;

    if (!warn_ms || ms < warn_ms || dog->slots[index].warned)
        return;
    dog->slots[index].warned = true;
    if (dog->ops->slow)
        dog->ops->slow(index, ms, dog->arg);
}

static void stop_slice(struct watchdog *dog, unsigned index, uint64_t ms)
{
    struct slot *slot    = &dog->slots[index];
    uint64_t     stop_ms = dog->limits.stop_ms;

    if (!stop_ms || ms < stop_ms)
        return;
    if (dog->ops->over)
        dog->ops->over(index, slot->slices, ms, dog->arg);
    if (slot->unstopped || ms < stop_ms + WATCHDOG_STOP_MS)
        return;
    slot->unstopped = true;
    if (dog->ops->unstopped)
        dog->ops->unstopped(index, ms, dog->arg);
}

static void look_at_slice(struct watchdog *dog, unsigned index, uint64_t turn, uint64_t now)
{
    struct slot *slot   = &dog->slots[index];
    uint64_t     slices = count_slices(slot);
    uint64_t     ms;

    if (turn != slot->turn || slices != slot->slices)
        begin_slice(slot, turn, slices, now);
    ms = slice_ms(slot, now);
    warn_of_slice(dog, index, ms);
    stop_slice(dog, index, ms);
}

/* --- all of them ---------------------------------------------------------------------------- */

/* After a pause of the whole machine (SIGSTOP, a suspended guest) every turn looks long: one look
 * is left out. Not two in a row, or a machine under great load would never be looked at. */
static bool stood_still(struct watchdog *dog, uint64_t now)
{
    bool gap = now - dog->last_look_ns > (uint64_t)WATCHDOG_GAP_MS * NS_PER_MS;

    dog->last_look_ns = now;
    dog->skipped      = gap && !dog->skipped;
    return dog->skipped;
}

/* Returns the time until the next look. */
static unsigned look(struct watchdog *dog)
{
    uint64_t now     = clock_mono_ns();
    unsigned wait_ms = WATCHDOG_IDLE_MS;

    if (stood_still(dog, now))
        return WATCHDOG_BUSY_MS;
    for (unsigned i = 0; i < dog->count; i++) {
        uint64_t turn = loop_busy_since_ns(dog->slots[i].watched.loop);

        look_at_turn(dog, i, turn, now);
        look_at_slice(dog, i, turn, now);
        if (turn)
            wait_ms = WATCHDOG_BUSY_MS;
    }
    return wait_ms;
}

/* Lock held; it is given up while the thread waits. */
static void wait_for_ms(struct watchdog *dog, unsigned ms)
{
    uint64_t        at = clock_mono_ns() + (uint64_t)ms * NS_PER_MS;
    struct timespec ts = { (time_t)(at / NS_PER_S), (long)(at % NS_PER_S) };

    while (!dog->closing && pthread_cond_timedwait(&dog->closing_set, &dog->lock, &ts) != ETIMEDOUT)
        continue;
}

static void watchdog_main(void *arg)
{
    struct watchdog *dog = arg;

    dog->last_look_ns = clock_mono_ns();
    pthread_mutex_lock(&dog->lock);
    while (!dog->closing)
        wait_for_ms(dog, look(dog));
    pthread_mutex_unlock(&dog->lock);
}

/* --- life ----------------------------------------------------------------------------------- */

static void init_lock(struct watchdog *dog)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&dog->closing_set, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&dog->lock, NULL);
}

static void free_dog(struct watchdog *dog)
{
    pthread_cond_destroy(&dog->closing_set);
    pthread_mutex_destroy(&dog->lock);
    free(dog);
}

int watchdog_open(struct watchdog **out, const struct watched *watched, unsigned count,
                  const struct watchdog_limits *limits, const struct watchdog_ops *ops, void *arg,
                  struct err *err)
{
    struct watchdog *dog = calloc(1, sizeof(*dog) + count * sizeof(dog->slots[0]));
    int              rc;

    if (!dog)
        return err_set(err, ERR_MEMORY, "no memory for the watchdog");
    dog->ops    = ops;
    dog->arg    = arg;
    dog->limits = *limits;
    dog->count  = count;
    for (unsigned i = 0; i < count; i++)
        dog->slots[i].watched = watched[i];
    init_lock(dog);
    rc = thread_start(&dog->thread, "srv-watchdog", 0, watchdog_main, dog, err);
    if (rc < 0) {
        free_dog(dog);
        return rc;
    }
    *out = dog;
    return 0;
}

void watchdog_close(struct watchdog *dog)
{
    if (!dog)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->closing = true;
    pthread_cond_signal(&dog->closing_set);
    pthread_mutex_unlock(&dog->lock);
    thread_join(&dog->thread);
    free_dog(dog);
}
