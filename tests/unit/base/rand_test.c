#include "base/rand.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

enum { IDS_PER_THREAD = 5000, THREADS = 4 };

static char ids[THREADS][IDS_PER_THREAD][RAND_ID_LEN];

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, RAND_ID_LEN);
}

static void *make_ids(void *arg)
{
    for (int i = 0; i < IDS_PER_THREAD; i++)
        rand_id(((char(*)[RAND_ID_LEN])arg)[i]);
    return NULL;
}

TEST(ids_of_several_threads_never_meet)
{
    char(*all)[RAND_ID_LEN] = ids[0];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, make_ids, ids[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qsort(all, THREADS * IDS_PER_THREAD, RAND_ID_LEN, compare_ids);
    for (int i = 1; i < THREADS * IDS_PER_THREAD; i++)
        CHECK(memcmp(all[i - 1], all[i], RAND_ID_LEN) != 0);
}

TEST(an_id_is_made_of_digits_and_small_letters)
{
    char id[RAND_ID_LEN];

    for (int i = 0; i < 1000; i++) {
        rand_id(id);
        for (int j = 0; j < RAND_ID_LEN; j++)
            CHECK((id[j] >= '0' && id[j] <= '9') || (id[j] >= 'a' && id[j] <= 'z'));
    }
}

/* What a child process draws: one id and a secret, sent through a pipe. */
static void draw_in_child(char *drawn)
{
    int   ends[2], status;
    pid_t child;

    CHECK_INT(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        char mine[2 * RAND_ID_LEN];

        rand_id(mine);
        rand_bytes(mine + RAND_ID_LEN, RAND_ID_LEN);
        _exit(write(ends[1], mine, sizeof(mine)) != sizeof(mine));
    }
    CHECK_INT(read(ends[0], drawn, 2 * RAND_ID_LEN), 2 * RAND_ID_LEN);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_forked_child_draws_other_numbers_than_its_parent)
{
    char first[2 * RAND_ID_LEN], second[2 * RAND_ID_LEN], mine[2 * RAND_ID_LEN];

    rand_id(mine);
    rand_bytes(mine, 1); /* both the generator and the buffer are warm */
    draw_in_child(first);
    draw_in_child(second);
    rand_id(mine);
    rand_bytes(mine + RAND_ID_LEN, RAND_ID_LEN);
    for (int half = 0; half < 2; half++) {
        int at = half * RAND_ID_LEN;

        CHECK(memcmp(first + at, second + at, RAND_ID_LEN) != 0);
        CHECK(memcmp(first + at, mine + at, RAND_ID_LEN) != 0);
    }
}

TEST(bytes_of_any_length_are_filled_to_their_end)
{
    static const size_t lengths[] = { 1, 7, 255, 256, 257, 5000 };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        unsigned char *bytes = calloc(lengths[i] + 1, 1);
        unsigned char  last  = 0;

        CHECK(bytes);
        /* Zero by chance in 40 draws: 2^-320. */
        for (int draw = 0; draw < 40; draw++) {
            rand_bytes(bytes, lengths[i]);
            last |= bytes[lengths[i] - 1];
        }
        CHECK(last != 0);
        CHECK_INT(bytes[lengths[i]], 0);
        free(bytes);
    }
}

TEST(values_below_a_bound_are_spread_evenly)
{
    unsigned counts[10] = { 0 };

    for (int i = 0; i < 100000; i++)
        counts[rand_below(10)]++;
    for (int i = 0; i < 10; i++)
        CHECK(counts[i] > 9000 && counts[i] < 11000); /* ten standard deviations */
    CHECK_INT(rand_below(1), 0);
}

TEST(the_process_key_stays_the_same)
{
    const uint64_t *key   = rand_process_key();
    uint64_t        first = key[0];

    CHECK(key[0] != 0 || key[1] != 0);
    CHECK(rand_process_key() == key && key[0] == first);
}

int main(void)
{
    return check_run();
}
