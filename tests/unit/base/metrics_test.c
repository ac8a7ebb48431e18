#include "base/metrics.h"

#include <math.h>
#include <pthread.h>

#include "base/err.h"
#include "base/metrics_text.h"
#include "support/check.h"

static struct metrics       *metrics;
static struct metrics_shard *shard;
static struct buf            page;
static struct err            err;

static void begin(void)
{
    CHECK_INT(metrics_open(&metrics, &err), 0);
    shard = metrics_shard_open(metrics);
    buf_init(&page, METRICS_TEXT_BYTES_MAX);
}

static void end(void)
{
    buf_fini(&page);
    metrics_close(metrics);
}

static bool shows(enum metrics_format format, const char *text)
{
    buf_clear(&page);
    metrics_render(metrics, format, &page);
    buf_add_byte(&page, '\0');
    return strstr(page.at, text) != NULL;
}

static const struct str   METHOD[] = { STR_INIT("method"), STR_INIT("status") };
static const double       BOUNDS[] = { 0.1, 1, 10 };
static struct metric_spec requests = {
    METRIC_COUNTER, STR_INIT("requests_total"), STR_INIT("All."), METHOD, 2, NULL, 0
};
static struct metric_spec durations = {
    METRIC_HISTOGRAM, STR_INIT("seconds"), STR_INIT(""), METHOD, 1, BOUNDS, 3
};
static struct metric_spec depth = {
    METRIC_GAUGE, STR_INIT("depth"), STR_INIT("a\\b\nc \"d\""), NULL, 0, NULL, 0
};

TEST(a_counter_is_the_sum_of_all_shards)
{
    struct metrics_shard *other;
    struct metric        *metric;

    begin();
    other  = metrics_shard_open(metrics);
    metric = metrics_define(metrics, &requests, &err);
    metric_add(metrics_series(shard, metric, (struct str[]){ STR("GET"), STR("2xx") }), 1);
    metric_add(metrics_series(other, metric, (struct str[]){ STR("GET"), STR("2xx") }), 2);
    metric_add(metrics_series(other, metric, (struct str[]){ STR("GET2"), STR("xx") }), 5);
    CHECK(shows(METRICS_PROMETHEUS, "# HELP requests_total All.\n# TYPE requests_total counter\n"
                                    "requests_total{method=\"GET\",status=\"2xx\"} 3\n"
                                    "requests_total{method=\"GET2\",status=\"xx\"} 5\n"));
    CHECK(shows(METRICS_OPENMETRICS, "# TYPE requests counter\nrequests_total{"));
    CHECK(shows(METRICS_OPENMETRICS, "\n# EOF\n"));
    end();
}

TEST(a_label_set_is_looked_up_once)
{
    struct metric *metric;
    struct str     values[] = { STR("GET"), STR("2xx") };

    begin();
    metric = metrics_define(metrics, &requests, &err);
    CHECK(metrics_series(shard, metric, values) == metrics_series(shard, metric, values));
    end();
}

TEST(a_histogram_counts_what_is_at_most_so_large)
{
    struct metric *metric;
    metric_cell   *cells;

    begin();
    metric = metrics_define(metrics, &durations, &err);
    cells  = metrics_series(shard, metric, (struct str[]){ STR("GET") });
    metric_observe(metric, cells, 0.1);
    metric_observe(metric, cells, 0.5);
    metric_observe(metric, cells, 99);
    CHECK(shows(METRICS_PROMETHEUS, "# TYPE seconds histogram\n"
                                    "seconds_bucket{method=\"GET\",le=\"0.1\"} 1\n"
                                    "seconds_bucket{method=\"GET\",le=\"1\"} 2\n"
                                    "seconds_bucket{method=\"GET\",le=\"10\"} 2\n"
                                    "seconds_bucket{method=\"GET\",le=\"+Inf\"} 3\n"
                                    "seconds_sum{method=\"GET\"} 99.6\n"
                                    "seconds_count{method=\"GET\"} 3\n"));
    CHECK(shows(METRICS_OPENMETRICS, "le=\"10.0\"} 2\n"));
    end();
}

TEST(a_gauge_is_one_for_the_process)
{
    struct metrics_shard *other;
    struct metric        *metric;

    begin();
    other  = metrics_shard_open(metrics);
    metric = metrics_define(metrics, &depth, &err);
    metric_set(metrics_series(shard, metric, NULL), 7);
    metric_change(metrics_series(other, metric, NULL), -2.5);
    CHECK(shows(METRICS_PROMETHEUS, "# HELP depth a\\\\b\\nc \"d\"\n"));
    CHECK(shows(METRICS_PROMETHEUS, "\ndepth 4.5\n"));
    CHECK(shows(METRICS_OPENMETRICS, "# HELP depth a\\\\b\\nc \\\"d\\\"\n"));
    end();
}

TEST(values_of_strangers_cannot_break_a_line)
{
    struct metric *metric;
    char           large[300];

    begin();
    memset(large, 'x', sizeof(large));
    metric = metrics_define(metrics, &requests, &err);
    metric_add(metrics_series(shard, metric, (struct str[]){ STR("a\"b\\c\nd\xff"), STR("") }), 1);
    metric_add(
        metrics_series(shard, metric, (struct str[]){ str_make(large, sizeof(large)), STR_NONE }),
        1);
    CHECK(shows(METRICS_PROMETHEUS, "{method=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\",status=\"\"} 1\n"));
    large[METRIC_VALUE_BYTES_MAX] = '\0';
    CHECK(shows(METRICS_PROMETHEUS, large));
    large[METRIC_VALUE_BYTES_MAX] = 'x';
    large[299]                    = '\0';
    CHECK(!shows(METRICS_PROMETHEUS, large));
    end();
}

TEST(the_same_again_is_the_same_and_another_kind_is_refused)
{
    struct metric_spec other = requests;

    begin();
    CHECK(metrics_define(metrics, &requests, &err) == metrics_define(metrics, &requests, &err));
    other.kind = METRIC_GAUGE;
    CHECK(!metrics_define(metrics, &other, &err));
    CHECK_INT(err.code, ERR_EXISTS);
    other             = requests;
    other.label_count = 1;
    CHECK(!metrics_define(metrics, &other, &err));
    other      = durations;
    other.name = STR("seconds");
    CHECK(metrics_define(metrics, &other, &err) != NULL);
    other.bound_count = 2;
    CHECK(!metrics_define(metrics, &other, &err));
    end();
}

TEST(names_labels_and_buckets_are_checked)
{
    static const char *const NAMES[]  = { "", "1a", "a-b", "a b", "\xc3\xa4" };
    static const char *const LABELS[] = { "", "le", "__a", "a:b", "1", "method" };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        struct metric_spec spec = depth;

        spec.name = str_of(NAMES[i]);
        CHECK(!metrics_define(metrics, &spec, &err));
        CHECK_INT(err.code, ERR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_LEN(LABELS); i++) {
        struct str         labels[] = { STR("method"), str_of(LABELS[i]) };
        struct metric_spec spec     = requests;

        spec.labels = labels;
        CHECK(!metrics_define(metrics, &spec, &err));
    }
    for (unsigned i = 0; i < 3; i++) {
        static const double WRONG[][2] = { { 1, 1 }, { 2, 1 }, { 1, INFINITY } };
        struct metric_spec  spec       = durations;

        spec.bounds      = WRONG[i];
        spec.bound_count = 2;
        CHECK(!metrics_define(metrics, &spec, &err));
    }
    end();
}

TEST(label_sets_beyond_the_bound_are_refused_and_counted)
{
    struct metric *metric;

    begin();
    metric = metrics_define(metrics, &requests, &err);
    for (unsigned i = 0; i < METRICS_SERIES_MAX + 3; i++) {
        char         text[16];
        int          len  = snprintf(text, sizeof(text), "%u", i);
        struct str   id   = str_make(text, (size_t)len);
        metric_cell *cell = metrics_series(shard, metric, (struct str[]){ id, STR("") });

        CHECK(i < METRICS_SERIES_MAX ? cell != NULL : cell == NULL);
    }
    CHECK(shows(METRICS_PROMETHEUS, "srv_metrics_refused_total 3\n"));
    CHECK(shows(METRICS_PROMETHEUS, "srv_metrics_series 10000\n"));
    CHECK(metrics_series(shard, metric, (struct str[]){ STR("0"), STR("") }) != NULL);
    end();
}

static void tell(struct metrics_out *out, void *arg)
{
    metrics_out_family(out, METRIC_GAUGE, "lane_queue", "Jobs that wait.");
    metrics_out_sample(out, *(double *)arg, "lane", "file", "kind", "a\"b", NULL);
}

TEST(collectors_tell_their_own_numbers)
{
    double                   waiting   = 3;
    struct metrics_collector collector = { .collect = tell, .arg = &waiting };

    begin();
    metrics_collect(metrics, &collector);
    CHECK(shows(METRICS_PROMETHEUS, "# HELP lane_queue Jobs that wait.\n# TYPE lane_queue gauge\n"
                                    "lane_queue{lane=\"file\",kind=\"a\\\"b\"} 3\n"));
    metrics_uncollect(metrics, &collector);
    CHECK(!shows(METRICS_PROMETHEUS, "lane_queue"));
    end();
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *count(void *arg)
{
    struct metrics_shard *own       = metrics_shard_open(metrics);
    struct metric        *counter   = metrics_define(metrics, &requests, NULL);
    struct metric        *histogram = metrics_define(metrics, &durations, NULL);
    struct metric        *gauge     = metrics_define(metrics, &depth, NULL);

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct str values[] = { i % 2 ? STR("GET") : STR("PUT"), STR("2xx") };

        metric_add(metrics_series(own, counter, values), 1);
        metric_observe(histogram, metrics_series(own, histogram, values), 0.5);
        metric_change(metrics_series(own, gauge, NULL), 1);
    }
    return NULL;
}

TEST(threads_count_side_by_side_while_it_is_shown)
{
    pthread_t threads[THREADS];

    begin();
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (unsigned i = 0; i < 50; i++)
        shows(METRICS_OPENMETRICS, "");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(shows(METRICS_PROMETHEUS, "requests_total{method=\"GET\",status=\"2xx\"} 40000\n"));
    CHECK(shows(METRICS_PROMETHEUS, "seconds_count{method=\"PUT\"} 40000\n"));
    CHECK(shows(METRICS_PROMETHEUS, "depth 80000\n"));
    end();
}

int main(void)
{
    return check_run();
}
