/* base/rand.h - randomness: secrets from the kernel, ids from a fast generator.
 *
 * rand_bytes() is for keys, tokens and cookies: nobody can guess what comes next. rand_id() only
 * promises that no two ids are the same, in any thread, process or machine. Any thread. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

enum { RAND_ID_LEN = 16 };

/* Fills TO from getrandom(2). Short requests are served from a buffer of the thread's own, whose
 * bytes are wiped as they go out and thrown away in a forked child. Ends the process if the kernel
 * has no randomness: no secret may be made without. */
void rand_bytes(void *to, size_t len);

/* 0 <= result < BOUND (not 0), every value equally likely. From the fast generator. */
uint64_t rand_below(uint64_t bound);

/* 64 bits of the thread's fast generator: not for secrets. */
uint64_t rand_u64(void);

/* RAND_ID_LEN characters of [0-9a-z] without a NUL: 80 bits; about 10 ns. */
void rand_id(char *to);

/* Two words made once for each process: the seed of hash tables. */
const uint64_t *rand_process_key(void);

#endif
