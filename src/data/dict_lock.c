#include "data/dict_lock.h"

#include <sched.h>

/* Which line a thread counts in: given out in turn. */
static unsigned own_line(void)
{
    static atomic_uint            next;
    static _Thread_local unsigned line = DICT_LOCK_LINES;

    if (line == DICT_LOCK_LINES)
        line = atomic_fetch_add(&next, 1) % DICT_LOCK_LINES;
    return line;
}

void dict_lock_init(struct dict_lock *lock)
{
    pthread_mutexattr_t attributes;

    for (unsigned i = 0; i < DICT_LOCK_LINES; i++)
        atomic_init(&lock->lines[i].readers, 0);
    atomic_init(&lock->writing, false);
    pthread_mutexattr_init(&attributes);
    /* What it guards takes less time than a sleep: spin first. */
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&lock->writers, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void dict_lock_fini(struct dict_lock *lock)
{
    pthread_mutex_destroy(&lock->writers);
}

/* Both sides store, then look at what the other has stored; in the one order that all sequentially
 * consistent operations have, one of them sees the other. */
struct dict_reading dict_lock_read(struct dict_lock *lock)
{
    struct dict_reading reading = { .line = own_line() };

    atomic_fetch_add(&lock->lines[reading.line].readers, 1);
    if (!atomic_load(&lock->writing))
        return reading;
    atomic_fetch_sub_explicit(&lock->lines[reading.line].readers, 1, memory_order_release);
    pthread_mutex_lock(&lock->writers);
    reading.alone = true;
    return reading;
}

void dict_unlock_read(struct dict_lock *lock, struct dict_reading reading)
{
    if (reading.alone)
        pthread_mutex_unlock(&lock->writers);
    else
        atomic_fetch_sub_explicit(&lock->lines[reading.line].readers, 1, memory_order_release);
}

/* A reader holds it for one copy, unless it was taken off its CPU amid that. */
static void await_readers(atomic_uint *readers)
{
    enum { SPINS = 1000 };

    for (unsigned i = 0; atomic_load(readers) != 0; i++)
        if (i >= SPINS)
            sched_yield();
}

void dict_lock_write(struct dict_lock *lock)
{
    pthread_mutex_lock(&lock->writers);
    atomic_store(&lock->writing, true);
    for (unsigned i = 0; i < DICT_LOCK_LINES; i++)
        await_readers(&lock->lines[i].readers);
}

void dict_unlock_write(struct dict_lock *lock)
{
    atomic_store_explicit(&lock->writing, false, memory_order_release);
    pthread_mutex_unlock(&lock->writers);
}
