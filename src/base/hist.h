/* base/hist.h - a histogram of durations: log-linear buckets, so that any value keeps three digits.
 *
 * Up to 2048 each value has a bucket of its own; beyond, each power of two is cut into 1024. So a
 * value read back is at most 0.1 % off, from 1 to HIST_VALUE_MAX, in memory that does not depend on
 * how many were counted. The unit is the caller's (microseconds, in srv bench).
 *
 * One thread adds; any thread may read meanwhile and sees a moment's numbers, each of them whole. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    HIST_LINEAR_BITS = 11, /* values below 2^11 stand for themselves */
    HIST_VALUE_BITS  = 32, /* 71 minutes of microseconds; larger ones count as the largest */
    HIST_HALF        = 1 << (HIST_LINEAR_BITS - 1),
    HIST_BUCKETS     = (HIST_VALUE_BITS - HIST_LINEAR_BITS + 2) * HIST_HALF,
};

#define HIST_VALUE_MAX UINT32_MAX

struct hist {
    _Atomic uint64_t counts[HIST_BUCKETS];
    _Atomic uint64_t total; /* values counted */
    _Atomic uint64_t sum;   /* of them, exactly */
};

/* Zeroed memory is an empty one. */
void hist_add(struct hist *hist, uint64_t value);

/* TO is the caller's own, FROM may be counting. */
void hist_merge(struct hist *to, const struct hist *from);
/* What was counted since FROM was what OLDER is: OLDER is an earlier merge of the same. */
void hist_subtract(struct hist *from, const struct hist *older);

uint64_t hist_count(const struct hist *hist);

/* The smallest value that PERCENT of all are not above (0: the smallest, 100: the largest); the
 * middle of its bucket. 0 while nothing was counted. */
uint64_t hist_percentile(const struct hist *hist, double percent);

double hist_mean(const struct hist *hist);
double hist_deviation(const struct hist *hist); /* the standard one */

/* The least value of bucket INDEX, and of the one behind it. */
uint64_t hist_bucket_low(unsigned index);
uint64_t hist_bucket_high(unsigned index);

#endif
