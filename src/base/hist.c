#include "base/hist.h"

#include <math.h>
#include <stdbool.h>

static uint64_t read_count(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* There is one writer, so no locked instruction is needed. */
static void raise_count(_Atomic uint64_t *cell, uint64_t by)
{
    atomic_store_explicit(cell, read_count(cell) + by, memory_order_relaxed);
}

/* Buckets of one power of two stand behind those of the power before it. */
static unsigned bucket_of(uint64_t value)
{
    unsigned shift;

    if (value >> HIST_LINEAR_BITS == 0)
        return (unsigned)value;
    if (value > HIST_VALUE_MAX)
        return HIST_BUCKETS - 1;
    shift = (unsigned)(63 - __builtin_clzll(value)) - (HIST_LINEAR_BITS - 1);
    return shift * HIST_HALF + (unsigned)(value >> shift);
}

uint64_t hist_bucket_low(unsigned index)
{
    unsigned shift;

    if (index < 2 * HIST_HALF)
        return index;
    shift = index / HIST_HALF - 1;
    return (uint64_t)(index - shift * HIST_HALF) << shift;
}

uint64_t hist_bucket_high(unsigned index)
{
    return hist_bucket_low(index + 1);
}

static uint64_t middle_of(unsigned index)
{
    uint64_t low = hist_bucket_low(index);

    return low + (hist_bucket_high(index) - low - 1) / 2;
}

void hist_add(struct hist *hist, uint64_t value)
{
    raise_count(&hist->counts[bucket_of(value)], 1);
    raise_count(&hist->sum, value);
    raise_count(&hist->total, 1);
}

void hist_merge(struct hist *to, const struct hist *from)
{
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t count = read_count(&from->counts[i]);

        if (count) {
            raise_count(&to->counts[i], count);
            raise_count(&to->total, count); /* not from->total, which may be a value ahead */
        }
    }
    raise_count(&to->sum, read_count(&from->sum));
}

void hist_subtract(struct hist *from, const struct hist *older)
{
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t count = read_count(&older->counts[i]);

        if (count) {
            raise_count(&from->counts[i], -count);
            raise_count(&from->total, -count);
        }
    }
    raise_count(&from->sum, -read_count(&older->sum));
}

uint64_t hist_count(const struct hist *hist)
{
    return read_count(&hist->total);
}

/* How many values stand at or below the one that is asked for. */
static uint64_t rank_of(uint64_t total, double percent)
{
    double rank = ceil((double)total * percent / 100);

    if (rank < 1)
        return 1;
    return rank > (double)total ? total : (uint64_t)rank;
}

uint64_t hist_percentile(const struct hist *hist, double percent)
{
    uint64_t total = hist_count(hist);
    uint64_t left  = rank_of(total, percent);

    if (!total)
        return 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t count = read_count(&hist->counts[i]);

        if (count >= left)
            return middle_of(i);
        left -= count;
    }
    return 0; /* it is counting, and was read before what it counts */
}

double hist_mean(const struct hist *hist)
{
    uint64_t total = hist_count(hist);

    return total ? (double)read_count(&hist->sum) / (double)total : 0;
}

double hist_deviation(const struct hist *hist)
{
    uint64_t total   = hist_count(hist);
    double   mean    = hist_mean(hist);
    double   squares = 0;

    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        double away = (double)middle_of(i) - mean;

        squares += away * away * (double)read_count(&hist->counts[i]);
    }
    return total ? sqrt(squares / (double)total) : 0;
}
