#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { BUFFER_BYTES = 256 };

/* xoshiro256** (Blackman and Vigna). */
struct generator {
    uint64_t state[4];
};

/* One for each thread, so that no lock is needed. Thread-local because a caller that only wants
 * an id should not have to carry this about. */
struct source {
    unsigned         epoch; /* of the fork count: another value means that it must be made anew */
    size_t           left;  /* unread bytes at the end of buffer */
    unsigned char    buffer[BUFFER_BYTES];
    struct generator fast;
};

static _Thread_local struct source thread_source;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned       fork_epoch; /* 0 until the first use; raised in each forked child */
static uint64_t       process_key[2];

static void from_kernel(void *to, size_t len)
{
    unsigned char *at = to;

    while (len) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fputs("srv: the kernel gives no random bytes\n", stderr);
            abort();
        }
        at += got;
        len -= (size_t)got;
    }
}

/* A child has one thread only, so a plain variable will do. */
static void after_fork(void)
{
    fork_epoch++;
}

static void start(void)
{
    pthread_atfork(NULL, NULL, after_fork);
    from_kernel(process_key, sizeof(process_key));
    fork_epoch++;
}

/* The thread's source, seeded: in a forked child too, or parent and child would make the same ids. */
static struct source *source(void)
{
    struct source *s = &thread_source;

    if (s->epoch == 0)
        pthread_once(&once, start);
    if (s->epoch != fork_epoch) {
        from_kernel(s->fast.state, sizeof(s->fast.state));
        s->epoch = fork_epoch;
        s->left  = 0;
    }
    return s;
}

void rand_bytes(void *to, size_t len)
{
    struct source *s = source();
    unsigned char *from;

    if (len > BUFFER_BYTES) {
        from_kernel(to, len);
        return;
    }
    if (s->left < len) {
        from_kernel(s->buffer, sizeof(s->buffer));
        s->left = sizeof(s->buffer);
    }
    from = s->buffer + sizeof(s->buffer) - s->left;
    memcpy(to, from, len);
    explicit_bzero(from, len);
    s->left -= len;
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t next(struct generator *g)
{
    uint64_t *s      = g->state;
    uint64_t  result = rotate(s[1] * 5, 7) * 9;
    uint64_t  t      = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t rand_u64(void)
{
    return next(&source()->fast);
}

uint64_t rand_below(uint64_t bound)
{
    uint64_t uneven = -bound % bound; /* 2^64 mod bound: values below it would come too often */
    uint64_t value;

    assert(bound > 0);
    do
        value = rand_u64();
    while (value < uneven);
    return value % bound;
}

void rand_id(char *to)
{
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* Crockford's: no i l o u */
    struct generator *fast      = &source()->fast;
    uint64_t          high = next(fast), low = next(fast);

    for (int i = 0; i < RAND_ID_LEN / 2; i++) {
        to[i]                   = letters[high >> (5 * i) & 31];
        to[i + RAND_ID_LEN / 2] = letters[low >> (5 * i) & 31];
    }
}

const uint64_t *rand_process_key(void)
{
    pthread_once(&once, start);
    return process_key;
}
