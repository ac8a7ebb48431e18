#include "data/dict.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "data/dict_lock.h"
#include "ev/thread.h"
#include "support/check.h"

enum { NOW = 1000000, KIB = 1024, MIB = 1024 * 1024 };

static struct dicts *dicts;
static struct buf    bytes;

static struct dict *open_dict(uint64_t budget)
{
    struct dict *dict;
    struct err   err;

    dicts_close(dicts);
    CHECK_INT(dicts_open(&dicts, &err), 0);
    CHECK_INT(dicts_get(&dict, dicts, STR("test"), budget, &err), 0);
    if (bytes.bytes_max == 0)
        buf_init(&bytes, 64 * MIB);
    return dict;
}

static struct dict_value text(const char *at)
{
    return (struct dict_value){ .bytes = str_of(at) };
}

static struct dict_value number(double n)
{
    return (struct dict_value){ .is_number = true, .number = n };
}

static int set(struct dict *dict, const char *key, struct dict_value value, uint64_t ttl_ms)
{
    return dict_set(dict, str_of(key), &value, ttl_ms, NOW);
}

static bool has_at(struct dict *dict, const char *key, uint64_t now_ms)
{
    struct dict_value value;

    return dict_get(dict, str_of(key), now_ms, &value, &bytes) == 0;
}

static const char *get(struct dict *dict, const char *key)
{
    static char       out[256];
    struct dict_value value;

    if (dict_get(dict, str_of(key), NOW, &value, &bytes) != 0)
        return "none";
    if (value.is_number)
        snprintf(out, sizeof(out), "%g", value.number);
    else
        snprintf(out, sizeof(out), "%.*s", STR_ARG(value.bytes));
    return out;
}

static struct dict_stats stats(void)
{
    struct dict_stats out;

    CHECK_INT(dicts_stats(dicts, &out, 1), 1);
    return out;
}

TEST(a_value_is_there_until_it_is_deleted)
{
    struct dict *dict = open_dict(MIB);

    CHECK_STR(get(dict, "k"), "none");
    CHECK_INT(set(dict, "k", text("v"), 0), 0);
    CHECK_STR(get(dict, "k"), "v");
    CHECK_INT(set(dict, "k", text(""), 0), 0);
    CHECK_STR(get(dict, "k"), "");
    CHECK_INT(set(dict, "k", number(1.5), 0), 0);
    CHECK_STR(get(dict, "k"), "1.5");
    CHECK(dict_delete(dict, STR("k"), NOW));
    CHECK(!dict_delete(dict, STR("k"), NOW));
    CHECK_STR(get(dict, "k"), "none");
    CHECK_INT(stats().entries, 0);
}

TEST(a_large_value_comes_back_whole_whatever_the_buffer_had)
{
    struct dict      *dict  = open_dict(8 * MIB);
    char             *large = malloc(MIB);
    struct dict_value value = { .bytes = str_make(large, MIB) };

    for (size_t i = 0; i < MIB; i++)
        large[i] = (char)(i * 31);
    CHECK_INT(dict_set(dict, STR("k"), &value, 0, NOW), 0);
    buf_fini(&bytes);
    buf_init(&bytes, 64 * MIB);
    CHECK_INT(dict_get(dict, STR("k"), NOW, &value, &bytes), 0);
    CHECK_MEM(value.bytes.at, value.bytes.len, large, MIB);
    free(large);
}

TEST(a_time_to_live_ends_to_the_millisecond)
{
    struct dict *dict = open_dict(MIB);

    CHECK_INT(set(dict, "k", text("v"), 250), 0);
    CHECK(has_at(dict, "k", NOW + 249));
    CHECK(!has_at(dict, "k", NOW + 250));
    CHECK_INT(set(dict, "k", text("v"), 250), 0);
    CHECK_INT(set(dict, "k", text("w"), 0), 0);
    CHECK(has_at(dict, "k", NOW + 1000000));
}

TEST(writes_sweep_out_what_has_expired)
{
    struct dict *dict = open_dict(MIB);
    char         key[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "old-%d", i);
        CHECK_INT(set(dict, key, text("v"), 10), 0);
    }
    CHECK_INT(stats().entries, 1000);
    for (int i = 0; i < 5000; i++) {
        struct dict_value value = text("v");

        CHECK_INT(dict_set(dict, STR("one"), &value, 0, NOW + 20), 0);
    }
    CHECK_INT(stats().entries, 1);
    CHECK_INT(stats().expired, 1000);
}

TEST(add_takes_a_place_only_once)
{
    struct dict      *dict = open_dict(MIB);
    struct dict_value a = text("a"), b = text("b");

    CHECK_INT(dict_add(dict, STR("k"), &a, 100, NOW), 0);
    CHECK_INT(dict_add(dict, STR("k"), &b, 100, NOW), ERR_EXISTS);
    CHECK_STR(get(dict, "k"), "a");
    CHECK_INT(dict_add(dict, STR("k"), &b, 100, NOW + 100), 0);
}

TEST(replace_takes_only_the_place_of_what_is_there)
{
    struct dict      *dict = open_dict(MIB);
    struct dict_value a = text("a"), b = text("b");

    CHECK_INT(dict_replace(dict, STR("k"), &a, 0, NOW), ERR_NOT_FOUND);
    CHECK_STR(get(dict, "k"), "none");
    CHECK_INT(set(dict, "k", a, 100), 0);
    CHECK_INT(dict_replace(dict, STR("k"), &b, 300, NOW + 50), 0);
    CHECK_STR(get(dict, "k"), "b");
    CHECK(has_at(dict, "k", NOW + 349));
    CHECK_INT(dict_replace(dict, STR("k"), &a, 0, NOW + 350), ERR_NOT_FOUND);
}

TEST(incr_begins_at_nothing_and_keeps_the_first_time_to_live)
{
    struct dict *dict = open_dict(MIB);
    double       sum;

    CHECK_INT(dict_incr(dict, STR("n"), 2, 100, NOW, &sum), 0);
    CHECK(sum == 2);
    CHECK_INT(dict_incr(dict, STR("n"), -0.5, 5000, NOW + 50, &sum), 0);
    CHECK(sum == 1.5);
    CHECK(!has_at(dict, "n", NOW + 100));
    CHECK_INT(dict_incr(dict, STR("n"), 7, 0, NOW + 100, &sum), 0);
    CHECK(sum == 7);
    CHECK_INT(set(dict, "s", text("x"), 0), 0);
    CHECK_INT(dict_incr(dict, STR("s"), 1, 0, NOW, &sum), ERR_INVALID);
}

TEST(cas_changes_only_what_is_as_expected_and_keeps_the_time_to_live)
{
    struct dict      *dict = open_dict(MIB);
    struct dict_value a = text("a"), b = text("b"), one = number(1);

    CHECK_INT(dict_cas(dict, STR("k"), &a, &b, NOW), ERR_EXISTS);
    CHECK_INT(dict_cas(dict, STR("k"), NULL, &a, NOW), 0);
    CHECK_INT(dict_cas(dict, STR("k"), NULL, &b, NOW), ERR_EXISTS);
    CHECK_INT(dict_cas(dict, STR("k"), &one, &b, NOW), ERR_EXISTS);
    CHECK_INT(dict_cas(dict, STR("k"), &a, &b, NOW), 0);
    CHECK_STR(get(dict, "k"), "b");
    CHECK_INT(dict_cas(dict, STR("k"), &b, NULL, NOW), 0);
    CHECK_STR(get(dict, "k"), "none");
    CHECK_INT(set(dict, "t", one, 100), 0);
    CHECK_INT(dict_cas(dict, STR("t"), &one, &a, NOW + 50), 0);
    CHECK(!has_at(dict, "t", NOW + 100));
}

/* --- the budget ----------------------------------------------------------------------------------- */

TEST(the_least_recently_used_go_first)
{
    struct dict *dict = open_dict(64 * KIB);
    char         key[32];
    uint64_t     now = NOW;
    unsigned     i   = 0;

    struct dict_value value = text("0123456789");

    while (stats().evicted == 0) {
        snprintf(key, sizeof(key), "%u", i++);
        CHECK_INT(dict_set(dict, str_of(key), &value, 0, now), 0);
    }
    CHECK(!has_at(dict, "0", now));
    now += DICT_TOUCH_MS;
    CHECK(has_at(dict, "1", now)); /* read: it is the most recent now */
    for (unsigned more = 0; more < 3; more++) {
        snprintf(key, sizeof(key), "more %u", more);
        CHECK_INT(dict_set(dict, str_of(key), &value, 0, now), 0);
    }
    CHECK(has_at(dict, "1", now));
    CHECK(!has_at(dict, "2", now));
    CHECK(!has_at(dict, "3", now));
    CHECK(!has_at(dict, "4", now));
    CHECK(has_at(dict, "5", now));
}

TEST(nothing_ever_exceeds_the_budget)
{
    struct dict *dict = open_dict(4 * MIB);
    char         key[32];
    char        *large = calloc(1, 300 * KIB);

    for (unsigned i = 0; i < 3000; i++) {
        struct dict_value value = { .bytes = str_make(large, (i * 7919) % (300 * KIB)) };

        snprintf(key, sizeof(key), "%u", i % 500);
        CHECK_INT(dict_set(dict, str_of(key), &value, 0, NOW + i), 0);
        CHECK(stats().used <= 4 * MIB);
    }
    CHECK(stats().used > 3 * MIB);
    CHECK(stats().evicted > 0);
    for (unsigned i = 0; i < 500; i++) {
        snprintf(key, sizeof(key), "%u", i);
        dict_delete(dict, str_of(key), NOW);
    }
    CHECK_INT(stats().entries, 0);
    free(large);
}

TEST(the_largest_entry_fits_into_a_full_dictionary_and_one_byte_more_does_not)
{
    struct dict      *dict  = open_dict(256 * KIB);
    size_t            max   = dict_entry_bytes_max(dict);
    char             *large = calloc(1, max + 64);
    struct dict_value value = { .bytes = str_make(large, max - 1) };
    char              key[32];

    for (unsigned i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "%u", i);
        CHECK_INT(set(dict, key, text("v"), 0), 0);
    }
    CHECK_INT(dict_set(dict, STR("k"), &value, 0, NOW), 0);
    CHECK_INT(stats().entries, 1);
    value.bytes.len = max + 16;
    CHECK_INT(dict_set(dict, STR("k"), &value, 0, NOW), ERR_TOO_LARGE);
    CHECK(has_at(dict, "k", NOW));
    free(large);
}

/* --- names ---------------------------------------------------------------------------------------- */

TEST(a_name_stands_for_one_dictionary)
{
    struct dict *a = open_dict(MIB), *b, *c;
    struct err   err;

    CHECK_INT(dicts_get(&b, dicts, STR("test"), 5 * MIB, &err), 0);
    CHECK(a == b);
    CHECK_INT(dict_bytes(b), MIB);
    CHECK_INT(dicts_get(&c, dicts, STR("other"), 0, &err), 0);
    CHECK(c != a);
    CHECK_INT(dict_bytes(c), DICT_BYTES);
    CHECK_INT(dicts_get(&c, dicts, STR(""), 0, &err), ERR_INVALID);
    CHECK_INT(dicts_get(&c, dicts, STR("small"), 1000, &err), ERR_INVALID);
}

TEST(there_are_only_so_many_dictionaries)
{
    struct dict *dict = open_dict(DICT_BYTES_MIN);
    struct err   err;
    char         name[32];

    for (unsigned i = 1; i < DICT_COUNT_MAX; i++) {
        snprintf(name, sizeof(name), "d%u", i);
        CHECK_INT(dicts_get(&dict, dicts, str_of(name), DICT_BYTES_MIN, &err), 0);
    }
    CHECK_INT(dicts_get(&dict, dicts, STR("one more"), DICT_BYTES_MIN, &err), ERR_TOO_LARGE);
}

/* --- threads -------------------------------------------------------------------------------------- */

enum { THREADS = 4 };

static struct dict *common;
static atomic_uint  torn;
static unsigned     rounds; /* fewer under a sanitizer */

static unsigned rounds_here(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return 5000;
#else
    return 50000;
#endif
}

static void run_threads(void (*run)(void *arg))
{
    struct thread threads[THREADS];
    struct err    err;

    rounds = rounds_here();
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(thread_start(&threads[i], "dict", 0, run, (void *)(uintptr_t)i, &err), 0);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
}

static void count(void *arg)
{
    double sum;

    for (unsigned i = 0; i < rounds; i++)
        dict_incr(common, STR("n"), 1, 0, NOW, &sum);
}

TEST(increments_of_many_threads_are_all_counted)
{
    struct dict_value value;

    common = open_dict(MIB);
    run_threads(count);
    CHECK_INT(dict_get(common, STR("n"), NOW, &value, &bytes), 0);
    CHECK_INT(value.number, THREADS * (long long)rounds);
}

/* Every value is one byte, many times: a torn copy would show two. */
static void hammer(void *arg)
{
    unsigned   seed = (unsigned)(uintptr_t)arg + 1;
    struct buf to;
    char       from[600], key[16];

    buf_init(&to, MIB);
    for (unsigned i = 0; i < rounds; i++) {
        struct dict_value value;
        size_t            len;

        seed = seed * 1103515245 + 12345;
        len  = 1 + (seed >> 8) % 599;
        snprintf(key, sizeof(key), "%u", (seed >> 16) % 300);
        if (seed >> 29 < 2) {
            memset(from, (int)(seed >> 20), len);
            value = (struct dict_value){ .bytes = str_make(from, len) };
            dict_set(common, str_of(key), &value, seed & 1 ? 20 : 0, NOW + i / 100);
        } else if (seed >> 29 == 2) {
            dict_delete(common, str_of(key), NOW + i / 100);
        } else if (dict_get(common, str_of(key), NOW + i / 100, &value, &to) == 0) {
            for (size_t at = 1; at < value.bytes.len; at++)
                if (value.bytes.at[at] != value.bytes.at[0])
                    atomic_fetch_add(&torn, 1);
        }
    }
    buf_fini(&to);
}

TEST(threads_that_read_write_delete_and_evict_see_whole_values)
{
    common = open_dict(DICT_BYTES_MIN);
    atomic_store(&torn, 0);
    run_threads(hammer);
    CHECK_INT(atomic_load(&torn), 0);
    CHECK(stats().used <= DICT_BYTES_MIN);
}

static void swap(void *arg)
{
    struct buf to;

    buf_init(&to, MIB);
    for (unsigned i = 0; i < rounds; i++) {
        struct dict_value old, next;

        do {
            if (dict_get(common, STR("n"), NOW, &old, &to) != 0)
                old = number(0);
            next = number(old.number + 1);
        } while (dict_cas(common, STR("n"), &old, &next, NOW) != 0);
    }
    buf_fini(&to);
}

TEST(of_many_threads_that_swap_one_succeeds_at_a_time)
{
    struct dict_value zero = number(0), value;

    common = open_dict(MIB);
    CHECK_INT(dict_set(common, STR("n"), &zero, 0, NOW), 0);
    run_threads(swap);
    CHECK_INT(dict_get(common, STR("n"), NOW, &value, &bytes), 0);
    CHECK_INT(value.number, THREADS * (long long)rounds);
}

/* For 16 MiB; sanitizers have memory of their own for each byte. */
static size_t growth_max(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return 1024 * (size_t)MIB;
#else
    return 18 * (size_t)MIB;
#endif
}

/* Of the process. */
static size_t resident_bytes(void)
{
    FILE         *statm = fopen("/proc/self/statm", "r");
    unsigned long size, resident;

    CHECK_INT(fscanf(statm, "%lu %lu", &size, &resident), 2);
    fclose(statm);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void churn(void *arg)
{
    static const unsigned MOST[] = { 60, 3000, 90000, 60, 90000, 600 };
    static const char     zeroes[90000];
    unsigned              seed = (unsigned)(uintptr_t)arg + 1;
    char                  key[16];

    for (unsigned phase = 0; phase < ARRAY_LEN(MOST); phase++) {
        for (size_t written = 0; written < 24 * MIB;) {
            struct dict_value value;

            seed  = seed * 1103515245 + 12345;
            value = (struct dict_value){ .bytes = str_make(zeroes, (seed >> 8) % MOST[phase]) };
            snprintf(key, sizeof(key), "%u", seed >> 12);
            dict_set(common, str_of(key), &value, 0, NOW);
            written += 80 + value.bytes.len;
        }
    }
}

TEST(values_of_many_sizes_by_many_threads_take_no_more_memory_than_was_given)
{
    size_t before = resident_bytes();

    common = open_dict(16 * MIB);
    run_threads(churn);
    CHECK(stats().used > 8 * MIB);
    CHECK(resident_bytes() < before + growth_max());
}

int main(void)
{
    int status = check_run();

    dicts_close(dicts);
    buf_fini(&bytes);
    return status;
}
