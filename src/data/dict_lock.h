/* data/dict_lock.h - a lock that many threads can hold for reading without writing to the same memory.
 *
 * A reader counts itself in a line of its own thread's, so reads of a hot key cost the same however
 * many threads read it. A writer looks at all of these lines: 8 loads. Nobody may wait, allocate or
 * call back while holding it. Any thread. */
#ifndef DATA_DICT_LOCK_H
#define DATA_DICT_LOCK_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { DICT_LOCK_LINES = 8, DICT_LOCK_LINE_BYTES = 64 };

/* Stands on a line of its own, so its memory is aligned to DICT_LOCK_LINE_BYTES. */
struct dict_lock {
    struct {
        alignas(DICT_LOCK_LINE_BYTES) atomic_uint readers;
    } lines[DICT_LOCK_LINES];
    alignas(DICT_LOCK_LINE_BYTES) pthread_mutex_t writers;
    atomic_bool writing;
};

void dict_lock_init(struct dict_lock *lock);
void dict_lock_fini(struct dict_lock *lock);

/* What dict_unlock_read() is to be given. */
struct dict_reading {
    unsigned line;
    bool     alone; /* a writer was there: it reads as one of them */
};
struct dict_reading dict_lock_read(struct dict_lock *lock);
void                dict_unlock_read(struct dict_lock *lock, struct dict_reading reading);

void dict_lock_write(struct dict_lock *lock);
void dict_unlock_write(struct dict_lock *lock);

#endif
