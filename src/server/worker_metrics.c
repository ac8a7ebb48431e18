/* A route of the app keeps a pointer to its counts (lhttp_finished.kept), so that a request costs a look at
 * the clock and three additions. The counts themselves are the worker's: the same route in a later
 * generation goes on counting there. */
#include "server/worker_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "bind/lhttp_state.h"
#include "http/exchange.h"

enum {
    OUTCOMES   = 6, /* aborted, and the classes of status */
    ROUTES_MAX = 4096,
    KEY_MAX    = 512, /* a longer pattern is cut: its label is, too */
};

static const struct str OUTCOME_NAMES[OUTCOMES] = {
    STR_INIT("aborted"), STR_INIT("1xx"), STR_INIT("2xx"),
    STR_INIT("3xx"),     STR_INIT("4xx"), STR_INIT("5xx"),
};

/* Requests of one method to one route. */
struct route_counts {
    unsigned     method;
    metric_cell *requests[OUTCOMES]; /* NULL: there was none so far */
    metric_cell *duration;
    size_t       method_len; /* of KEY; the pattern follows */
    size_t       key_len;
    char         key[];
};

static const double SECONDS[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                  0.1,    0.25,  0.5,    1,     2.5,  5,     10 };

static struct str pattern_of(const struct route_counts *counts)
{
    return str_make(counts->key + counts->method_len, counts->key_len - counts->method_len);
}

/* --- requests --------------------------------------------------------------------------------------- */

static struct route_counts *add_route(struct worker_metrics *m, unsigned method, size_t method_len,
                                      struct str key)
{
    struct route_counts *counts;

    if (m->routes.count >= ROUTES_MAX)
        return NULL;
    counts = calloc(1, sizeof(*counts) + key.len);
    if (!counts)
        return NULL;
    counts->method     = method;
    counts->method_len = method_len;
    counts->key_len    = key.len;
    memcpy(counts->key, key.at, key.len);
    if (!map_put(&m->routes, str_make(counts->key, key.len), counts, NULL)) {
        free(counts);
        return NULL;
    }
    return counts;
}

/* "GET /users/:id" is shown as its pattern: the method is a label of its own, HEAD is not GET. */
static struct str pattern_in(const char *route)
{
    const char *blank = strchr(route, ' ');

    return blank ? str_of(blank + 1) : STR("(none)");
}

static struct route_counts *find_route(struct worker_metrics       *m,
                                       const struct lhttp_finished *finished)
{
    const struct request *request = &finished->ex->request;
    struct str            pattern = pattern_in(finished->route);
    char                  text[KEY_MAX];
    size_t                method_len = request->method.len;
    struct route_counts  *counts;
    struct str            key;

    if (method_len > METRIC_VALUE_BYTES_MAX)
        return NULL;
    memcpy(text, request->method.at, method_len);
    if (pattern.len > KEY_MAX - method_len)
        pattern.len = KEY_MAX - method_len;
    memcpy(text + method_len, pattern.at, pattern.len);
    key    = str_make(text, method_len + pattern.len);
    counts = map_get(&m->routes, key);
    return counts ? counts : add_route(m, request->method_id, method_len, key);
}

static struct route_counts *counts_for(struct worker_metrics       *m,
                                       const struct lhttp_finished *finished)
{
    struct route_counts *counts = finished->kept ? *finished->kept : NULL;

    if (counts && counts->method == finished->ex->request.method_id)
        return counts;
    counts = find_route(m, finished);
    if (finished->kept)
        *finished->kept = counts;
    return counts;
}

static metric_cell *series_of(struct worker_metrics *m, struct metric *metric,
                              const struct route_counts *counts, struct str outcome)
{
    struct str values[] = { str_make(counts->key, counts->method_len), pattern_of(counts),
                            outcome };

    return metrics_series(m->shard, metric, values);
}

static unsigned outcome_of(const struct exchange *ex)
{
    unsigned class = ex->answer_status / 100;

    return ex->answer_state == ANSWER_ENDED && class < OUTCOMES ? class : 0;
}

static void count(struct worker_metrics *m, struct route_counts *counts, unsigned outcome,
                  double seconds)
{
    if (!counts->requests[outcome])
        counts->requests[outcome] = series_of(m, m->requests, counts, OUTCOME_NAMES[outcome]);
    if (!counts->duration)
        counts->duration = series_of(m, m->durations, counts, STR_NONE);
    if (counts->requests[outcome])
        metric_add(counts->requests[outcome], 1);
    if (counts->duration)
        metric_observe(m->durations, counts->duration, seconds);
}

void worker_metrics_request(struct worker_metrics *m, const struct lhttp_finished *finished)
{
    struct route_counts *counts;

    if (!metrics_is_watched(m->metrics))
        return;
    counts = counts_for(m, finished);
    if (counts)
        count(m, counts, outcome_of(finished->ex),
              (double)(clock_mono_ns() - finished->ex->started_ns) / 1e9);
}

void worker_metrics_refused(struct worker_metrics *m, unsigned status)
{
    char         text[16];
    struct str   value = str_make(text, (size_t)snprintf(text, sizeof(text), "%u", status));
    metric_cell *cell;

    if (status == 0)
        value = STR("none");
    cell = metrics_series(m->shard, m->refused, &value);

    if (cell)
        metric_add(cell, 1);
}

void worker_metrics_handshake(struct worker_metrics *m, const char *result)
{
    struct str   value = str_of(result);
    metric_cell *cell  = metrics_series(m->shard, m->handshakes, &value);

    if (cell)
        metric_add(cell, 1);
}

/* --- state ------------------------------------------------------------------------------------------- */

void worker_metrics_state(struct worker_metrics *m, const struct worker_state *state)
{
    metric_set(m->connections, state->connections);
    metric_set(m->tasks, state->tasks);
    metric_set(m->generations, state->generations);
    metric_set(m->generation, state->generation);
    metric_set(m->lua_bytes, (double)state->lua_bytes);
    metric_observe(m->turns, m->turn, (double)state->turn_ns / 1e9);
}

/* --- life -------------------------------------------------------------------------------------------- */

static struct metric *define(struct worker_metrics *m, enum metric_kind kind, const char *name,
                             const char *help, const struct str *labels, unsigned label_count,
                             struct err *err)
{
    struct metric_spec spec = { .kind        = kind,
                                .name        = str_of(name),
                                .help        = str_of(help),
                                .labels      = labels,
                                .label_count = label_count };

    if (kind == METRIC_HISTOGRAM) {
        spec.bounds      = SECONDS;
        spec.bound_count = ARRAY_LEN(SECONDS);
    }
    return metrics_define(m->metrics, &spec, err);
}

/* A gauge of each worker. NULL after an error. */
static metric_cell *define_own(struct worker_metrics *m, unsigned worker, const char *name,
                               const char *help, struct err *err)
{
    static const struct str LABELS[] = { STR_INIT("worker") };
    struct metric          *metric   = define(m, METRIC_GAUGE, name, help, LABELS, 1, err);
    char                    text[16];
    struct str value = str_make(text, (size_t)snprintf(text, sizeof(text), "%u", worker));

    return metric ? metrics_series(m->shard, metric, &value) : NULL;
}

static void define_requests(struct worker_metrics *m, struct err *err)
{
    static const struct str LABELS[] = { STR_INIT("method"), STR_INIT("route"),
                                         STR_INIT("status") };

    m->requests  = define(m, METRIC_COUNTER, "srv_http_requests_total",
                          "Requests that are over, by the app's route.", LABELS, 3, err);
    m->durations = define(m, METRIC_HISTOGRAM, "srv_http_request_duration_seconds",
                          "From a request's first byte to its answer's last.", LABELS, 2, err);
    m->refused =
        define(m, METRIC_COUNTER, "srv_http_refused_total",
               "What was refused before it was a request for the app.", &LABELS[2], 1, err);
}

static void define_handshakes(struct worker_metrics *m, struct err *err)
{
    static const struct str LABELS[] = { STR_INIT("result") };

    m->handshakes = define(m, METRIC_COUNTER, "srv_tls_handshakes_total",
                           "TLS handshakes of clients that are over.", LABELS, 1, err);
}

static void define_state(struct worker_metrics *m, unsigned worker, struct err *err)
{
    m->turns =
        define(m, METRIC_HISTOGRAM, "srv_loop_turn_seconds",
               "How long event loops were busy before they looked at sockets again.", NULL, 0, err);
    m->turn = m->turns ? metrics_series(m->shard, m->turns, NULL) : NULL;
    m->connections =
        define_own(m, worker, "srv_http_connections", "Open connections of clients.", err);
    m->tasks = define_own(m, worker, "srv_tasks", "Tasks that have not ended; they wait.", err);
    m->generations = define_own(m, worker, "srv_generations",
                                "Versions of the app in memory: those before the last one end "
                                "with their requests.",
                                err);
    m->generation = define_own(m, worker, "srv_generation", "Version of the app that serves.", err);
    m->lua_bytes  = define_own(m, worker, "srv_lua_memory_bytes", "Memory of the Lua states.", err);
}

int worker_metrics_open(struct worker_metrics *m, struct metrics *metrics,
                        struct metrics_shard *shard, unsigned worker, struct err *err)
{
    *m = (struct worker_metrics){ .metrics = metrics, .shard = shard };
    map_init(&m->routes);
    define_requests(m, err);
    define_handshakes(m, err);
    define_state(m, worker, err);
    if (m->requests && m->durations && m->refused && m->handshakes && m->turn && m->connections &&
        m->tasks && m->generations && m->generation && m->lua_bytes)
        return 0;
    return err_set(err, ERR_MEMORY, "no memory for a worker's metrics");
}

void worker_metrics_close(struct worker_metrics *m)
{
    size_t               cursor = 0;
    struct route_counts *counts;

    while ((counts = map_next(&m->routes, &cursor, NULL)))
        free(counts);
    map_fini(&m->routes);
}
