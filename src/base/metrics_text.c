#include "base/metrics_text.h"

#include <math.h>
#include <stdarg.h>

#include "base/metrics_impl.h"
#include "base/number.h"
#include "base/text.h"

struct metrics_out {
    struct buf         *to;
    enum metrics_format format;
    enum metric_kind    kind; /* of the family that is being told */
    struct str          name; /* as its samples bear it */
};

/* --- pieces ---------------------------------------------------------------------------------------- */

static void add_number(struct buf *to, double value)
{
    char text[NUMBER_TEXT_MAX];

    if (isnan(value))
        buf_add_str(to, STR("NaN"));
    else if (isinf(value))
        buf_add_str(to, value > 0 ? STR("+Inf") : STR("-Inf"));
    else
        buf_add(to, text, number_format(text, value));
}

/* With \, line ends and quotes escaped; what is no UTF-8 becomes U+FFFD, for scrapers refuse a whole
 * page for one such byte. */
static void add_escaped(struct buf *to, struct str text)
{
    while (text.len) {
        size_t len = text_utf8_len(text);

        if (len == 0)
            buf_add_str(to, STR("\xef\xbf\xbd"));
        else if (*text.at == '\n')
            buf_add_str(to, STR("\\n"));
        else if (*text.at == '\\' || *text.at == '"')
            buf_add(to, (char[]){ '\\', *text.at }, 2);
        else
            buf_add(to, text.at, len);
        text = str_from(text, len ? len : 1);
    }
}

/* In Prometheus' own format a quote in a help text is not escaped. */
static void add_help(const struct metrics_out *out, struct str help)
{
    struct str rest = help;

    if (out->format == METRICS_OPENMETRICS) {
        add_escaped(out->to, help);
        return;
    }
    while (rest.len) {
        size_t at = str_find(rest, '"');

        add_escaped(out->to, str_make(rest.at, at));
        if (at == rest.len)
            return;
        buf_add_byte(out->to, '"');
        rest = str_from(rest, at + 1);
    }
}

static void add_label(struct buf *to, bool *first, struct str name, struct str value)
{
    buf_add_byte(to, *first ? '{' : ',');
    *first = false;
    buf_add_str(to, name);
    buf_add_str(to, STR("=\""));
    add_escaped(to, value);
    buf_add_byte(to, '"');
}

/* --- families -------------------------------------------------------------------------------------- */

static const struct str TOTAL = STR_INIT("_total");

static struct str without_total(struct str name)
{
    return str_ends_with(name, TOTAL) ? str_make(name.at, name.len - TOTAL.len) : name;
}

/* OpenMetrics names a counter's family without the "_total" that its samples bear; Prometheus' own
 * format knows samples only. */
static void begin_family(struct metrics_out *out, enum metric_kind kind, struct str name,
                         struct str help)
{
    static const struct str KINDS[] = {
        [METRIC_COUNTER]   = STR_INIT("counter"),
        [METRIC_GAUGE]     = STR_INIT("gauge"),
        [METRIC_HISTOGRAM] = STR_INIT("histogram"),
    };
    struct str family = name;

    if (kind == METRIC_COUNTER && out->format == METRICS_OPENMETRICS)
        family = without_total(name);
    out->kind = kind;
    out->name = name;
    if (help.len) {
        buf_add_str(out->to, STR("# HELP "));
        buf_add_str(out->to, family);
        buf_add_byte(out->to, ' ');
        add_help(out, help);
        buf_add_byte(out->to, '\n');
    }
    buf_add_str(out->to, STR("# TYPE "));
    buf_add_str(out->to, family);
    buf_add_byte(out->to, ' ');
    buf_add_str(out->to, KINDS[kind]);
    buf_add_byte(out->to, '\n');
}

static void add_name(const struct metrics_out *out, struct str suffix)
{
    bool counter = out->kind == METRIC_COUNTER && out->format == METRICS_OPENMETRICS;

    buf_add_str(out->to, out->name);
    if (counter && !str_ends_with(out->name, TOTAL))
        buf_add_str(out->to, TOTAL);
    buf_add_str(out->to, suffix);
}

static void end_sample(struct metrics_out *out, bool no_label, double value)
{
    if (!no_label)
        buf_add_byte(out->to, '}');
    buf_add_byte(out->to, ' ');
    add_number(out->to, value);
    buf_add_byte(out->to, '\n');
}

/* --- series ---------------------------------------------------------------------------------------- */

static bool add_labels(struct buf *to, const struct metric *metric, const struct series *series)
{
    const unsigned char *at    = series->key;
    bool                 first = true;

    for (unsigned i = 0; i < metric->label_count; i++) {
        add_label(to, &first, str_of(metric->labels[i]), str_make((const char *)at + 1, at[0]));
        at += 1 + at[0];
    }
    return first;
}

/* The sum over all shards of the cell AT behind the series' first. */
static double sum_of(const struct metrics *metrics, const struct series *series, unsigned at)
{
    unsigned index = series->first + at;
    double   sum   = 0;

    for (unsigned i = 0; i < metrics->shard_count; i++) {
        metric_chunk *chunk = atomic_load_explicit(&metrics->shards[i]->chunks[index / CHUNK_CELLS],
                                                   memory_order_acquire);

        if (chunk)
            sum += atomic_load_explicit(&chunk->cells[index % CHUNK_CELLS], memory_order_relaxed);
    }
    return sum;
}

static void add_bucket(struct metrics_out *out, const struct metric *metric,
                       const struct series *series, unsigned bucket, double count)
{
    char   text[NUMBER_TEXT_MAX + 2];
    size_t len = 0;
    bool   no_label;

    if (bucket < metric->bound_count) {
        len = number_format(text, metric->bounds[bucket]);
        if (out->format == METRICS_OPENMETRICS && !memchr(text, '.', len) &&
            !memchr(text, 'e', len)) {
            text[len++] = '.';
            text[len++] = '0';
        }
    }
    add_name(out, STR("_bucket"));
    no_label = add_labels(out->to, metric, series);
    add_label(out->to, &no_label, STR("le"), len ? str_make(text, len) : STR("+Inf"));
    end_sample(out, no_label, count);
}

static void add_histogram(struct metrics_out *out, const struct metrics *metrics,
                          const struct metric *metric, const struct series *series)
{
    double count = 0;
    bool   no_label;

    for (unsigned i = 0; i <= metric->bound_count; i++) {
        count += sum_of(metrics, series, 1 + i);
        add_bucket(out, metric, series, i, count);
    }
    add_name(out, STR("_sum"));
    no_label = add_labels(out->to, metric, series);
    end_sample(out, no_label, sum_of(metrics, series, 0));
    add_name(out, STR("_count"));
    no_label = add_labels(out->to, metric, series);
    end_sample(out, no_label, count);
}

static void add_series(struct metrics_out *out, const struct metrics *metrics,
                       const struct metric *metric, const struct series *series)
{
    bool no_label;

    if (metric->kind == METRIC_HISTOGRAM) {
        add_histogram(out, metrics, metric, series);
        return;
    }
    add_name(out, STR_NONE);
    no_label = add_labels(out->to, metric, series);
    end_sample(out, no_label,
               metric->kind == METRIC_GAUGE
                   ? atomic_load_explicit(&series->gauge, memory_order_relaxed)
                   : sum_of(metrics, series, 0));
}

static void add_family(struct metrics_out *out, const struct metrics *metrics,
                       const struct metric *metric)
{
    begin_family(out, metric->kind, str_of(metric->name), str_of(metric->help));
    list_each(node, &metric->all)
        add_series(out, metrics, metric, container_of(node, struct series, link));
}

/* --- collectors ------------------------------------------------------------------------------------- */

void metrics_out_family(struct metrics_out *out, enum metric_kind kind, const char *name,
                        const char *help)
{
    begin_family(out, kind, str_of(name), str_of(help));
}

void metrics_out_sample(struct metrics_out *out, double value, ...)
{
    bool        no_label = true;
    const char *name;
    va_list     labels;

    add_name(out, STR_NONE);
    va_start(labels, value);
    while ((name = va_arg(labels, const char *)))
        add_label(out->to, &no_label, str_of(name), str_of(va_arg(labels, const char *)));
    va_end(labels);
    end_sample(out, no_label, value);
}

/* --- the whole --------------------------------------------------------------------------------------- */

static void add_own(struct metrics_out *out, struct metrics *metrics)
{
    metrics_out_family(out, METRIC_GAUGE, "srv_metrics_series", "Label sets that are counted.");
    metrics_out_sample(out, metrics->series_count, NULL);
    metrics_out_family(out, METRIC_COUNTER, "srv_metrics_refused_total",
                       "Counts that were lost because there are too many label sets.");
    metrics_out_sample(out, atomic_load_explicit(&metrics->refused, memory_order_relaxed), NULL);
}

void metrics_render(struct metrics *metrics, enum metrics_format format, struct buf *out)
{
    struct metrics_out page = { .to = out, .format = format };

    pthread_mutex_lock(&metrics->lock);
    list_each(node, &metrics->families)
        add_family(&page, metrics, container_of(node, struct metric, link));
    list_each(node, &metrics->collectors)
    {
        struct metrics_collector *collector = container_of(node, struct metrics_collector, link);

        collector->collect(&page, collector->arg);
    }
    add_own(&page, metrics);
    pthread_mutex_unlock(&metrics->lock);
    if (format == METRICS_OPENMETRICS)
        buf_add_str(out, STR("# EOF\n"));
}
