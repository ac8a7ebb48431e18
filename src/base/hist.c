#include "base/hist.h"

#include <math.h>
#include <string.h>

enum { PARTS = 1 << HIST_PART_BITS };

void hist_init(struct hist *hist)
{
    memset(hist, 0, sizeof(*hist));
    hist->min = UINT64_MAX;
}

/* Values below 64 have a bucket each; above, the top seven bits choose it. */
static unsigned bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < PARTS)
        return (unsigned)value;
    shift = (unsigned)(63 - __builtin_clzll(value)) - HIST_PART_BITS;
    return (shift << HIST_PART_BITS) + (unsigned)(value >> shift);
}

/* The largest value that falls into BUCKET. */
static uint64_t upper_end(unsigned bucket)
{
    unsigned shift;

    if (bucket < PARTS)
        return bucket;
    shift = (bucket >> HIST_PART_BITS) - 1;
    return (((uint64_t)(bucket & (PARTS - 1)) + PARTS + 1) << shift) - 1;
}

void hist_add(struct hist *hist, uint64_t value)
{
    hist_add_many(hist, value, 1);
}

void hist_add_many(struct hist *hist, uint64_t value, uint64_t count)
{
    if (!count)
        return;
    hist->count += count;
    hist->sum += (double)value * (double)count;
    hist->sum_of_squares += (double)value * (double)value * (double)count;
    hist->buckets[bucket_of(value)] += count;
    if (value < hist->min)
        hist->min = value;
    if (value > hist->max)
        hist->max = value;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    into->count += from->count;
    into->sum += from->sum;
    into->sum_of_squares += from->sum_of_squares;
    for (unsigned i = 0; i < HIST_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
}

uint64_t hist_at(const struct hist *hist, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)hist->count);
    uint64_t seen   = 0;

    if (wanted == 0)
        return hist->count ? hist->min : 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += hist->buckets[i];
        if (seen >= wanted)
            return upper_end(i) < hist->max ? upper_end(i) : hist->max;
    }
    return hist->max;
}

double hist_mean(const struct hist *hist)
{
    return hist->count ? hist->sum / (double)hist->count : 0;
}

double hist_deviation(const struct hist *hist)
{
    double mean     = hist_mean(hist);
    double variance = hist->count ? hist->sum_of_squares / (double)hist->count - mean * mean : 0;

    return variance > 0 ? sqrt(variance) : 0;
}
