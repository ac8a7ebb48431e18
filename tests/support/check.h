/* tests/support/check.h - the unit tests' harness: a test is a function whose name is a claim.
 *
 *     TEST(buf_grows_to_its_bound) { ... CHECK(buf.len == 3); CHECK_STR(text, "abc"); }
 *     int main(void) { return check_run(); }
 *
 * Tests register themselves before main(). A failed check prints file, line and both sides, and
 * ends that test; the others still run. SKIP("why") ends it without a verdict. What a test has begun
 * and must not outlive it, as a thread, is told to check_begun(). */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
};

static struct check_test  *check_first;
static struct check_test **check_last = &check_first;
static jmp_buf             check_failed;
static unsigned            check_count;
static const char         *check_skip_reason = "";

enum check_verdict { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED, CHECK_VERDICTS };

#define TEST(title)                                                                                \
    static void                              title(void);                                          \
    static struct check_test                 check_test_##title = { #title, title, NULL };         \
    __attribute__((constructor)) static void check_add_##title(void)                               \
    {                                                                                              \
        *check_last = &check_test_##title;                                                         \
        check_last  = &check_test_##title.next;                                                    \
    }                                                                                              \
    static void title(void)

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        check_count++;                                                                             \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #claim);                  \
            longjmp(check_failed, CHECK_FAILED);                                                   \
        }                                                                                          \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        check_count++;                                                                             \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_,       \
                    want_);                                                                        \
            longjmp(check_failed, CHECK_FAILED);                                                   \
        }                                                                                          \
    } while (0)

#define CHECK_MEM(got, got_len, want, want_len)                                                    \
    do {                                                                                           \
        size_t got_n = (got_len), want_n = (want_len);                                             \
        check_count++;                                                                             \
        if (got_n != want_n || (got_n && memcmp((got), (want), got_n))) {                          \
            fprintf(stderr, "%s:%d: %s is\n  \"%.*s\", not\n  \"%.*s\"\n", __FILE__, __LINE__,     \
                    #got, (int)got_n, (const char *)(got), (int)want_n, (const char *)(want));     \
            longjmp(check_failed, CHECK_FAILED);                                                   \
        }                                                                                          \
    } while (0)

#define CHECK_STR(got, want) CHECK_MEM(got, strlen(got), want, strlen(want))

#define SKIP(why)                                                                                  \
    do {                                                                                           \
        check_skip_reason = (why);                                                                 \
        longjmp(check_failed, CHECK_SKIPPED);                                                      \
    } while (0)

enum { CHECK_BEGUN_MAX = 8 };

static struct {
    void (*end)(void *arg);
    void *arg;
} check_open[CHECK_BEGUN_MAX];
static unsigned check_open_count;

/* END(ARG) is called behind the test if it fails before it has done so. ARG outlives the test's function. */
static inline void check_begun(void (*end)(void *arg), void *arg)
{
    CHECK(check_open_count < CHECK_BEGUN_MAX);
    check_open[check_open_count].end   = end;
    check_open[check_open_count++].arg = arg;
}

static inline void check_ended(void *arg)
{
    for (unsigned i = check_open_count; i-- > 0;)
        if (check_open[i].arg == arg) {
            check_open[i] = check_open[--check_open_count];
            return;
        }
}

/* Backwards. Who ends says so by himself, or is taken from here. */
static inline void check_end_all(void)
{
    while (check_open_count) {
        unsigned last = check_open_count - 1;

        check_open[last].end(check_open[last].arg);
        if (check_open_count > last)
            check_open_count = last;
    }
}

/* In a function of its own, for setjmp() clobbers locals. */
static inline enum check_verdict check_one(const struct check_test *test)
{
    switch (setjmp(check_failed)) {
    case 0: test->run(); return CHECK_PASSED;
    case CHECK_SKIPPED:
        printf("skipped: %s: %s\n", test->name, check_skip_reason);
        return CHECK_SKIPPED;
    default: fprintf(stderr, "FAILED: %s\n", test->name); return CHECK_FAILED;
    }
}

/* Runs every test; the exit status of main(). */
static inline int check_run(void)
{
    unsigned count[CHECK_VERDICTS] = { 0 };

    for (struct check_test *test = check_first; test; test = test->next) {
        count[check_one(test)]++;
        check_end_all();
    }
    printf("%u passed, %u failed", count[CHECK_PASSED], count[CHECK_FAILED]);
    if (count[CHECK_SKIPPED])
        printf(", %u skipped", count[CHECK_SKIPPED]);
    printf(" (%u checks)\n", check_count);
    return count[CHECK_FAILED] ? 1 : 0;
}

#endif
