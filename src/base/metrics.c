/* The lock is for what is new: a metric, a label set, a shard's cells. From then on a thread finds a label
 * set in its own map and writes cells that nobody else writes. */
#include "base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/metrics_impl.h"

/* --- what may be named how ------------------------------------------------------------------------ */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(struct str name, bool colons)
{
    if (!name.len || name.len > METRIC_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];

        if (!is_letter(c) && !(colons && c == ':') && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

static int check_label(const struct metric_spec *spec, unsigned index, struct err *err)
{
    struct str label = spec->labels[index];

    if (!is_name(label, false) || str_starts_with(label, STR("__")) || str_is(label, STR("le")))
        return err_set(err, ERR_INVALID, "\"%.*s\" cannot be the name of a label", STR_ARG(label));
    for (unsigned i = 0; i < index; i++)
        if (str_is(spec->labels[i], label))
            return err_set(err, ERR_INVALID, "the label \"%.*s\" is named twice", STR_ARG(label));
    return 0;
}

static int check_bounds(const struct metric_spec *spec, struct err *err)
{
    if (spec->kind != METRIC_HISTOGRAM)
        return 0;
    if (spec->bound_count == 0 || spec->bound_count > METRIC_BUCKETS_MAX)
        return err_set(err, ERR_INVALID, "a histogram has from 1 to %d buckets",
                       METRIC_BUCKETS_MAX);
    for (unsigned i = 0; i < spec->bound_count; i++)
        if (!isfinite(spec->bounds[i]) || (i > 0 && spec->bounds[i] <= spec->bounds[i - 1]))
            return err_set(err, ERR_INVALID, "buckets are finite numbers that rise");
    return 0;
}

static int check_spec(const struct metric_spec *spec, struct err *err)
{
    int rc = 0;

    if (!is_name(spec->name, true))
        return err_set(err, ERR_INVALID, "\"%.*s\" cannot be the name of a metric",
                       STR_ARG(spec->name));
    if (spec->help.len > METRIC_HELP_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the help text of %.*s is longer than %d bytes",
                       STR_ARG(spec->name), METRIC_HELP_BYTES_MAX);
    if (spec->label_count > METRIC_LABELS_MAX)
        return err_set(err, ERR_INVALID, "a metric has at most %d labels", METRIC_LABELS_MAX);
    for (unsigned i = 0; rc == 0 && i < spec->label_count; i++)
        rc = check_label(spec, i, err);
    return rc == 0 ? check_bounds(spec, err) : rc;
}

/* --- metrics -------------------------------------------------------------------------------------- */

static void metric_free(struct metric *metric)
{
    struct list *node;

    while ((node = list_take_first(&metric->all)))
        free(container_of(node, struct series, link));
    map_fini(&metric->series);
    for (unsigned i = 0; i < metric->label_count; i++)
        free(metric->labels[i]);
    free(metric->name);
    free(metric->help);
    free(metric);
}

static char *copy(struct str text, bool *ok)
{
    char *to = malloc(text.len + 1);

    *ok = *ok && to;
    if (!to)
        return NULL;
    if (text.len)
        memcpy(to, text.at, text.len);
    to[text.len] = '\0';
    return to;
}

static struct metric *metric_new(const struct metric_spec *spec)
{
    struct metric *metric = calloc(1, sizeof(*metric));
    bool           ok     = true;

    if (!metric)
        return NULL;
    list_init(&metric->all);
    map_init(&metric->series);
    metric->kind        = spec->kind;
    metric->label_count = spec->label_count;
    metric->name        = copy(spec->name, &ok);
    metric->help        = copy(spec->help, &ok);
    for (unsigned i = 0; i < spec->label_count; i++)
        metric->labels[i] = copy(spec->labels[i], &ok);
    if (spec->kind == METRIC_HISTOGRAM) {
        metric->bound_count = spec->bound_count;
        memcpy(metric->bounds, spec->bounds, spec->bound_count * sizeof(double));
    }
    if (ok)
        return metric;
    metric_free(metric);
    return NULL;
}

/* The help text may be another: that is for people. */
static bool is_same(const struct metric *metric, const struct metric_spec *spec)
{
    if (metric->kind != spec->kind || metric->label_count != spec->label_count)
        return false;
    for (unsigned i = 0; i < spec->label_count; i++)
        if (!str_is(str_of(metric->labels[i]), spec->labels[i]))
            return false;
    if (spec->kind != METRIC_HISTOGRAM)
        return true;
    return metric->bound_count == spec->bound_count &&
           memcmp(metric->bounds, spec->bounds, spec->bound_count * sizeof(double)) == 0;
}

static struct metric *add_family(struct metrics *metrics, const struct metric_spec *spec,
                                 struct err *err)
{
    struct metric *metric;

    if (metrics->family_count >= METRICS_FAMILIES_MAX) {
        err_set(err, ERR_TOO_LARGE, "there are %d metrics already", METRICS_FAMILIES_MAX);
        return NULL;
    }
    metric = metric_new(spec);
    if (!metric || !map_put(&metrics->by_name, str_of(metric->name), metric, NULL)) {
        if (metric)
            metric_free(metric);
        err_set(err, ERR_MEMORY, "no memory for a metric");
        return NULL;
    }
    list_append(&metrics->families, &metric->link);
    metrics->family_count++;
    return metric;
}

struct metric *metrics_define(struct metrics *metrics, const struct metric_spec *spec,
                              struct err *err)
{
    struct metric *metric;

    if (check_spec(spec, err) != 0)
        return NULL;
    pthread_mutex_lock(&metrics->lock);
    metric = map_get(&metrics->by_name, spec->name);
    if (!metric) {
        metric = add_family(metrics, spec, err);
    } else if (!is_same(metric, spec)) {
        err_set(err, ERR_EXISTS, "%s is defined with another type, other labels or other buckets",
                metric->name);
        metric = NULL;
    }
    pthread_mutex_unlock(&metrics->lock);
    return metric;
}

enum metric_kind metric_kind(const struct metric *metric)
{
    return metric->kind;
}

unsigned metric_label_count(const struct metric *metric)
{
    return metric->label_count;
}

struct str metric_label(const struct metric *metric, unsigned index)
{
    return str_of(metric->labels[index]);
}

/* --- series ---------------------------------------------------------------------------------------- */

static size_t make_key(unsigned char *key, const struct metric *metric, const struct str *values)
{
    size_t len = 0;

    for (unsigned i = 0; i < metric->label_count; i++) {
        size_t bytes =
            values[i].len < METRIC_VALUE_BYTES_MAX ? values[i].len : METRIC_VALUE_BYTES_MAX;

        key[len++] = (unsigned char)bytes;
        if (bytes)
            memcpy(key + len, values[i].at, bytes);
        len += bytes;
    }
    return len;
}

/* Locked. Cells of one series lie in one chunk. False: there are too many. */
static bool give_cells(struct metrics *metrics, const struct metric *metric, unsigned *first)
{
    unsigned count = cells_of(metric);
    unsigned at    = metrics->next_cell;

    if (metric->kind == METRIC_GAUGE)
        return true;
    if (at % CHUNK_CELLS + count > CHUNK_CELLS)
        at += CHUNK_CELLS - at % CHUNK_CELLS;
    if (at + count > METRICS_CELLS_MAX)
        return false;
    metrics->next_cell = at + count;
    *first             = at;
    return true;
}

/* Locked. NULL: a bound, or no memory. */
static struct series *add_series(struct metrics *metrics, struct metric *metric, struct str key)
{
    struct series *series;

    if (metrics->series_count >= METRICS_SERIES_MAX)
        return NULL;
    series = calloc(1, sizeof(*series) + key.len);
    if (!series)
        return NULL;
    if (key.len)
        memcpy(series->key, key.at, key.len);
    series->key_len = (unsigned)key.len;
    if (!give_cells(metrics, metric, &series->first) ||
        !map_put(&metric->series, str_make((const char *)series->key, key.len), series, NULL)) {
        free(series);
        return NULL;
    }
    list_append(&metric->all, &series->link);
    metrics->series_count++;
    return series;
}

static struct series *find_series(struct metrics *metrics, struct metric *metric, struct str key)
{
    struct series *series;

    pthread_mutex_lock(&metrics->lock);
    series = map_get(&metric->series, key);
    if (!series)
        series = add_series(metrics, metric, key);
    pthread_mutex_unlock(&metrics->lock);
    return series;
}

static metric_cell *cells_in(struct metrics_shard *shard, unsigned first)
{
    _Atomic(metric_chunk *) *place = &shard->chunks[first / CHUNK_CELLS];
    metric_chunk            *chunk = atomic_load_explicit(place, memory_order_relaxed);

    if (!chunk) {
        chunk = calloc(1, sizeof(*chunk));
        if (!chunk)
            return NULL;
        atomic_store_explicit(place, chunk, memory_order_release);
    }
    return &chunk->cells[first % CHUNK_CELLS];
}

/* What a shard has looked up once. */
struct known {
    metric_cell *cells;
    size_t       key_len;
    char         key[]; /* the metric's address, then the series' key */
};

static metric_cell *learn(struct metrics_shard *shard, struct metric *metric, struct str key,
                          struct str values)
{
    struct series *series = find_series(shard->metrics, metric, values);
    metric_cell   *cells  = NULL;
    struct known  *known;

    if (series)
        cells = metric->kind == METRIC_GAUGE ? &series->gauge : cells_in(shard, series->first);
    if (!cells) {
        atomic_fetch_add_explicit(&shard->metrics->refused, 1, memory_order_relaxed);
        return NULL;
    }
    known = malloc(sizeof(*known) + key.len);
    if (!known)
        return cells; /* looked up again next time */
    *known = (struct known){ .cells = cells, .key_len = key.len };
    memcpy(known->key, key.at, key.len);
    if (!map_put(&shard->known, str_make(known->key, key.len), known, NULL))
        free(known);
    return cells;
}

metric_cell *metrics_series(struct metrics_shard *shard, struct metric *metric,
                            const struct str *values)
{
    char          text[sizeof(metric) + KEY_BYTES];
    size_t        len;
    struct known *known;

    memcpy(text, &metric, sizeof(metric));
    len   = make_key((unsigned char *)text + sizeof(metric), metric, values);
    known = map_get(&shard->known, str_make(text, sizeof(metric) + len));
    if (known)
        return known->cells;
    return learn(shard, metric, str_make(text, sizeof(metric) + len),
                 str_make(text + sizeof(metric), len));
}

/* Buckets are few: a walk is as fast as a search, and what is small is found first. */
void metric_observe(const struct metric *metric, metric_cell *cells, double value)
{
    unsigned bucket = 0;

    while (bucket < metric->bound_count && !(value <= metric->bounds[bucket]))
        bucket++;
    metric_add(&cells[0], value);
    metric_add(&cells[1 + bucket], 1);
}

void metric_change(metric_cell *cell, double by)
{
    double now = atomic_load_explicit(cell, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(cell, &now, now + by, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

/* --- collectors ------------------------------------------------------------------------------------ */

void metrics_collect(struct metrics *metrics, struct metrics_collector *collector)
{
    pthread_mutex_lock(&metrics->lock);
    list_append(&metrics->collectors, &collector->link);
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_uncollect(struct metrics *metrics, struct metrics_collector *collector)
{
    pthread_mutex_lock(&metrics->lock);
    list_remove(&collector->link);
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_watch(struct metrics *metrics)
{
    atomic_store_explicit(&metrics->watched, true, memory_order_relaxed);
}

bool metrics_is_watched(const struct metrics *metrics)
{
    return atomic_load_explicit(&metrics->watched, memory_order_relaxed);
}

/* --- life ------------------------------------------------------------------------------------------- */

struct metrics_shard *metrics_shard_open(struct metrics *metrics)
{
    struct metrics_shard *shard = calloc(1, sizeof(*shard));

    if (!shard)
        return NULL;
    shard->metrics = metrics;
    map_init(&shard->known);
    pthread_mutex_lock(&metrics->lock);
    if (metrics->shard_count < SHARDS_MAX)
        metrics->shards[metrics->shard_count++] = shard;
    else
        shard->metrics = NULL;
    pthread_mutex_unlock(&metrics->lock);
    if (shard->metrics)
        return shard;
    free(shard);
    return NULL;
}

static void shard_free(struct metrics_shard *shard)
{
    size_t        cursor = 0;
    struct known *known;

    while ((known = map_next(&shard->known, &cursor, NULL)))
        free(known);
    map_fini(&shard->known);
    for (unsigned i = 0; i < CHUNKS_MAX; i++)
        free(atomic_load_explicit(&shard->chunks[i], memory_order_relaxed));
    free(shard);
}

int metrics_open(struct metrics **out, struct err *err)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));

    if (!metrics)
        return err_set(err, ERR_MEMORY, "no memory for metrics");
    pthread_mutex_init(&metrics->lock, NULL);
    map_init(&metrics->by_name);
    list_init(&metrics->families);
    list_init(&metrics->collectors);
    *out = metrics;
    return 0;
}

void metrics_close(struct metrics *metrics)
{
    struct list *node;

    if (!metrics)
        return;
    for (unsigned i = 0; i < metrics->shard_count; i++)
        shard_free(metrics->shards[i]);
    while ((node = list_take_first(&metrics->families)))
        metric_free(container_of(node, struct metric, link));
    map_fini(&metrics->by_name);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}
