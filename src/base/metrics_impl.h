/* base/metrics_impl.h - what the registry (metrics.c) and its text (metrics_text.c) both know. */
#ifndef BASE_METRICS_IMPL_H
#define BASE_METRICS_IMPL_H

#include <pthread.h>

#include "base/map.h"
#include "base/metric.h"

enum {
    CHUNK_CELLS = 1024,
    CHUNKS_MAX  = METRICS_CELLS_MAX / CHUNK_CELLS,
    SHARDS_MAX  = 1024,
    KEY_BYTES   = METRIC_LABELS_MAX * (1 + METRIC_VALUE_BYTES_MAX),
};

/* One set of label values. */
struct series {
    struct list   link;  /* in metric->all */
    unsigned      first; /* index of its first cell in every shard; not a gauge's */
    metric_cell   gauge;
    unsigned      key_len;
    unsigned char key[]; /* each value as a byte of length and its bytes */
};

struct metric {
    struct list      link; /* in metrics->families */
    enum metric_kind kind;
    char            *name; /* owned, as all texts here */
    char            *help;
    char            *labels[METRIC_LABELS_MAX];
    unsigned         label_count;
    double           bounds[METRIC_BUCKETS_MAX];
    unsigned         bound_count;
    struct map       series; /* by key */
    struct list      all;
};

typedef struct {
    metric_cell cells[CHUNK_CELLS];
} metric_chunk;

/* Chunks are added by its thread and read by scrapes. */
struct metrics_shard {
    struct metrics         *metrics;
    struct map              known; /* its thread's: cells by metric and key */
    _Atomic(metric_chunk *) chunks[CHUNKS_MAX];
};

struct metrics {
    pthread_mutex_t       lock; /* all but the atomics */
    struct map            by_name;
    struct list           families;
    struct list           collectors;
    struct metrics_shard *shards[SHARDS_MAX];
    unsigned              shard_count;
    unsigned              family_count;
    unsigned              series_count;
    unsigned              next_cell;
    atomic_uint           refused;
    atomic_bool           watched;
};

/* Cells of one series: a histogram has its sum, a bucket for each bound and one for the rest. */
static inline unsigned cells_of(const struct metric *metric)
{
    return metric->kind == METRIC_HISTOGRAM ? metric->bound_count + 2 : 1;
}

#endif
