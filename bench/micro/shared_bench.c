/* What shared dictionaries cost: ns for each get, set and increment, by one thread and by two at once,
 * and how much memory a full one takes of what it was given. Prints a table with tabs. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "data/dict.h"
#include "ev/thread.h"

enum { ROUNDS = 5, TURNS = 1000 * 1000, KEYS = 10000, THREADS = 2, NOW = 1000 };

static struct dict *dict;
static char         value_bytes[1024];
static atomic_bool  started;

struct work {
    struct thread thread;
    void (*turn)(struct work *work, unsigned i);
    struct buf to;
    unsigned   number;
    double     ns;
};

static struct str key_of(struct work *work, unsigned i, char *room)
{
    return str_make(room, (size_t)sprintf(room, "user:%u", i % KEYS));
}

static void get(struct work *work, struct str key)
{
    struct dict_value value;

    if (dict_get(dict, key, NOW, &value, &work->to) != 0)
        abort();
}

static void get_hot(struct work *work, unsigned i)
{
    get(work, STR("hot"));
}

static void get_many(struct work *work, unsigned i)
{
    char room[32];

    get(work, key_of(work, i * 7919 + work->number, room));
}

static void set_many(struct work *work, unsigned i)
{
    char              room[32];
    struct dict_value value = { .bytes = str_make(value_bytes, 100) };

    if (dict_set(dict, key_of(work, i * 7919 + work->number, room), &value, 0, NOW) != 0)
        abort();
}

static void incr_hot(struct work *work, unsigned i)
{
    double sum;

    dict_incr(dict, STR("counter"), 1, 0, NOW, &sum);
}

static void incr_own(struct work *work, unsigned i)
{
    double sum;

    dict_incr(dict, work->number ? STR("counter b") : STR("counter a"), 1, 0, NOW, &sum);
}

static void run(void *arg)
{
    struct work *work = arg;
    uint64_t     from;

    while (!atomic_load(&started))
        ;
    from = clock_mono_ns();
    for (unsigned i = 0; i < TURNS; i++)
        work->turn(work, i);
    work->ns = (double)(clock_mono_ns() - from) / TURNS;
}

/* Wall ns of one turn of one thread, the best of several rounds. */
static double measure(void (*turn)(struct work *work, unsigned i), unsigned threads)
{
    struct work works[THREADS];
    struct err  err;
    double      best = 1e9;

    for (unsigned round = 0; round < ROUNDS; round++) {
        double slowest = 0;

        atomic_store(&started, false);
        for (unsigned i = 0; i < threads; i++) {
            works[i] = (struct work){ .turn = turn, .number = i };
            buf_init(&works[i].to, 1 << 20);
            if (thread_start(&works[i].thread, "bench", 0, run, &works[i], &err) != 0)
                abort();
        }
        atomic_store(&started, true);
        for (unsigned i = 0; i < threads; i++) {
            thread_join(&works[i].thread);
            buf_fini(&works[i].to);
            slowest = works[i].ns > slowest ? works[i].ns : slowest;
        }
        best = slowest < best ? slowest : best;
    }
    return best;
}

static void report(const char *what, void (*turn)(struct work *work, unsigned i))
{
    double one = measure(turn, 1), two = measure(turn, 2);

    printf("%s\t%.0f\t%.0f\t%.1f\n", what, one, two, 2000 / two);
}

static double resident_mib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  total, resident;

    if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
        abort();
    fclose(file);
    return (double)resident * 4096 / (1 << 20);
}

/* Fills a dictionary of 64 MiB many times over with values of all sizes up to MAX. */
static void fill(struct dicts *dicts, const char *name, unsigned max)
{
    struct dict *full;
    struct err   err;
    double       before = resident_mib();
    char         room[32];

    if (dicts_get(&full, dicts, str_of(name), 64 << 20, &err) != 0)
        abort();
    for (unsigned i = 0; i < 600u * (1 << 20) / (max / 2 + 100); i++) {
        struct dict_value value = { .bytes = str_make(value_bytes, (i * 7919) % max) };

        dict_set(full, str_make(room, (size_t)sprintf(room, "%s:%u", name, i)), &value, 0, NOW + i);
    }
    printf("64 MiB, full of values up to %u bytes\t%.1f MiB resident\n", max,
           resident_mib() - before);
}

int main(void)
{
    struct dicts     *dicts;
    struct err        err;
    struct dict_value value = { .bytes = str_make(value_bytes, 100) };
    struct work       work  = { 0 };

    if (dicts_open(&dicts, &err) != 0 || dicts_get(&dict, dicts, STR("bench"), 0, &err) != 0)
        return 1;
    dict_set(dict, STR("hot"), &value, 0, NOW);
    for (unsigned i = 0; i < KEYS; i++)
        set_many(&work, i);
    printf("what\tns, 1 thread\tns, 2 threads\tmillions/s, 2 threads\n");
    report("get, one hot key, 100 bytes", get_hot);
    report("get, 10,000 keys", get_many);
    report("set, 10,000 keys, 100 bytes", set_many);
    report("incr, a counter for each thread", incr_own);
    report("incr, one counter", incr_hot);
    fill(dicts, "a", 200);
    fill(dicts, "b", 1000);
    dicts_close(dicts);
    return 0;
}
