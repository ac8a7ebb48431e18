/* base/hist.h - a histogram of whole numbers (latencies in us or ns) in fixed memory.
 *
 * Buckets are log-linear: each power of two is cut into 64 equal parts, so a value is known to
 * 1.6 % whatever its size. 30 KiB; adding costs about 2 ns. One thread adds; merge to sum up. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdint.h>

enum {
    HIST_PART_BITS = 6,
    HIST_BUCKETS   = (64 - HIST_PART_BITS + 1) << HIST_PART_BITS,
};

struct hist {
    uint64_t count;
    uint64_t min; /* UINT64_MAX while empty */
    uint64_t max;
    double   sum;
    double   sum_of_squares;
    uint64_t buckets[HIST_BUCKETS];
};

void hist_init(struct hist *hist);
void hist_add(struct hist *hist, uint64_t value);
/* The same value COUNT times. */
void hist_add_many(struct hist *hist, uint64_t value, uint64_t count);
void hist_merge(struct hist *into, const struct hist *from);

/* The value that a SHARE (0..1) of all is not above, from the bucket's upper end, never above max.
 * 0 while empty. */
uint64_t hist_at(const struct hist *hist, double share);
double   hist_mean(const struct hist *hist);
double   hist_deviation(const struct hist *hist);

#endif
