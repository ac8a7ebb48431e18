#include "bind/lmetrics.h"

#include <math.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/metrics_text.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lstr.h"

#define COUNTER_METATABLE   "srv.Counter"
#define GAUGE_METATABLE     "srv.Gauge"
#define HISTOGRAM_METATABLE "srv.Histogram"

static const char *const METATABLES[] = {
    [METRIC_COUNTER]   = COUNTER_METATABLE,
    [METRIC_GAUGE]     = GAUGE_METATABLE,
    [METRIC_HISTOGRAM] = HISTOGRAM_METATABLE,
};

struct lmetric {
    struct metric        *metric; /* the registry's */
    struct metrics_shard *shard;  /* this worker's */
    metric_cell          *bare;   /* of a metric without labels; NULL: has some, or was refused */
};

/* --- defining --------------------------------------------------------------------------------------- */

static unsigned length_of(lua_State *L, int index, unsigned max, const char *what)
{
    size_t len = lua_istable(L, index) ? lua_objlen(L, index) : 0;

    if (len > max)
        lerror_misuse(L, "srv.metrics: a metric has at most %d %s", (int)max, what);
    return (unsigned)len;
}

/* The names stay on the stack, where they are alive. */
static void read_labels(lua_State *L, int index, struct metric_spec *spec, struct str *labels)
{
    spec->labels      = labels;
    spec->label_count = length_of(L, index, METRIC_LABELS_MAX, "labels");
    luaL_checkstack(L, METRIC_LABELS_MAX, NULL);
    for (unsigned i = 0; i < spec->label_count; i++) {
        lua_rawgeti(L, index, (int)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            lerror_misuse(L, "srv.metrics: the names of labels are strings");
        labels[i] = lstr_check(L, -1);
    }
}

static void read_bounds(lua_State *L, int index, struct metric_spec *spec, double *bounds)
{
    spec->bounds      = bounds;
    spec->bound_count = length_of(L, index, METRIC_BUCKETS_MAX, "buckets");
    for (unsigned i = 0; i < spec->bound_count; i++) {
        lua_rawgeti(L, index, (int)i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            lerror_misuse(L, "srv.metrics: buckets are numbers");
        bounds[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
}

static const struct env *check_env(lua_State *L)
{
    const struct env *env = env_of(L);

    if (!env->metrics || !env->metrics_shard)
        luaL_error(L, "there are no metrics here");
    return env;
}

/* define("counter" | "gauge" | "histogram", name, help, [labels], [buckets]) -> metric */
static int define(lua_State *L)
{
    static const char *const KINDS[] = { "counter", "gauge", "histogram", NULL };
    const struct env        *env     = check_env(L);
    struct metric_spec       spec = { .kind = (enum metric_kind)luaL_checkoption(L, 1, NULL, KINDS),
                                      .name = lstr_check(L, 2),
                                      .help = lstr_check(L, 3) };
    struct str               labels[METRIC_LABELS_MAX];
    double                   bounds[METRIC_BUCKETS_MAX];
    struct metric           *metric;
    struct lmetric          *own;
    struct err               err;

    read_labels(L, 4, &spec, labels);
    read_bounds(L, 5, &spec, bounds);
    metric = metrics_define(env->metrics, &spec, &err);
    if (!metric)
        return lerror_misuse(L, "srv.metrics: %s", err.text);
    own  = lua_newuserdata(L, sizeof(*own));
    *own = (struct lmetric){ .metric = metric, .shard = env->metrics_shard };
    if (spec.label_count == 0)
        own->bare = metrics_series(own->shard, metric, NULL);
    luaL_getmetatable(L, METATABLES[spec.kind]);
    lua_setmetatable(L, -2);
    return 1;
}

/* --- counting --------------------------------------------------------------------------------------- */

static void refuse_values(lua_State *L, const struct lmetric *own)
{
    luaL_Buffer names;

    luaL_buffinit(L, &names);
    for (unsigned i = 0; i < metric_label_count(own->metric); i++) {
        struct str label = metric_label(own->metric, i);

        luaL_addlstring(&names, i ? ", " : "", i ? 2 : 0);
        luaL_addlstring(&names, label.at, label.len);
    }
    luaL_pushresult(&names);
    lerror_misuse(L, "srv.metrics: a value is wanted for each label and no others: %s",
                  *lua_tostring(L, -1) ? lua_tostring(L, -1) : "(this metric has none)");
}

/* Pushes the value of label I from the table at INDEX: under its name, or in the labels' order. */
static struct str push_value(lua_State *L, int index, const struct lmetric *own, unsigned i)
{
    struct str label = metric_label(own->metric, i);
    struct str value;

    lstr_push(L, label);
    lua_rawget(L, index);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_rawgeti(L, index, (int)i + 1);
    }
    if (lua_isboolean(L, -1))
        return lua_toboolean(L, -1) ? STR("true") : STR("false");
    value = lstr_at(L, -1);
    if (!value.at)
        refuse_values(L, own);
    return value;
}

static unsigned count_fields(lua_State *L, int index)
{
    unsigned count = 0;

    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        count++;
    }
    return count;
}

/* The cells for the values in the table at INDEX; NULL: refused. */
static metric_cell *find_cells(lua_State *L, const struct lmetric *own, int index)
{
    unsigned   count = metric_label_count(own->metric);
    struct str values[METRIC_LABELS_MAX];

    if (count == 0 && lua_isnoneornil(L, index))
        return own->bare;
    if (!lua_istable(L, index) || count_fields(L, index) != count)
        refuse_values(L, own);
    luaL_checkstack(L, METRIC_LABELS_MAX + 2, NULL);
    for (unsigned i = 0; i < count; i++)
        values[i] = push_value(L, index, own, i);
    return metrics_series(own->shard, own->metric, values);
}

/* N or its default at 2 and the values at 3; the values alone may stand at 2. */
static double read_n(lua_State *L, int *values)
{
    bool   alone = lua_istable(L, 2);
    double n     = alone ? 1 : luaL_optnumber(L, 2, 1);

    *values = alone ? 2 : 3;
    return n;
}

static double check_number(lua_State *L, const char *what)
{
    if (lua_type(L, 2) != LUA_TNUMBER)
        lerror_misuse(L, "%s: a number is missing", what);
    return lua_tonumber(L, 2);
}

static int give_self(lua_State *L)
{
    lua_settop(L, 1);
    return 1;
}

/* counter:add([n = 1], [values]) -> counter */
static int counter_add(lua_State *L)
{
    struct lmetric *own = luaL_checkudata(L, 1, COUNTER_METATABLE);
    int             values;
    double          n = read_n(L, &values);
    metric_cell    *cell;

    if (!(n >= 0) || !isfinite(n))
        return lerror_misuse(L, "counter:add: a counter only grows; a gauge can fall too");
    cell = find_cells(L, own, values);
    if (cell)
        metric_add(cell, n);
    return give_self(L);
}

/* gauge:add([n = 1], [values]) -> gauge */
static int gauge_add(lua_State *L)
{
    struct lmetric *own = luaL_checkudata(L, 1, GAUGE_METATABLE);
    int             values;
    double          n    = read_n(L, &values);
    metric_cell    *cell = find_cells(L, own, values);

    if (cell)
        metric_change(cell, n);
    return give_self(L);
}

/* gauge:set(value, [values]) -> gauge */
static int gauge_set(lua_State *L)
{
    struct lmetric *own   = luaL_checkudata(L, 1, GAUGE_METATABLE);
    double          value = check_number(L, "gauge:set");
    metric_cell    *cell  = find_cells(L, own, 3);

    if (cell)
        metric_set(cell, value);
    return give_self(L);
}

/* histogram:observe(value, [values]) -> histogram */
static int histogram_observe(lua_State *L)
{
    struct lmetric *own   = luaL_checkudata(L, 1, HISTOGRAM_METATABLE);
    double          value = check_number(L, "histogram:observe");
    metric_cell    *cells;

    if (isnan(value))
        return lerror_misuse(L, "histogram:observe: NaN is no measurement");
    cells = find_cells(L, own, 3);
    if (cells)
        metric_observe(own->metric, cells, value);
    return give_self(L);
}

/* --- showing ----------------------------------------------------------------------------------------- */

/* The page is made on the pool: with many label sets it takes milliseconds. */
struct page {
    struct ljob         ljob;
    struct metrics     *metrics; /* the process's: outlives the pool's jobs */
    enum metrics_format format;
    struct buf          text;
};

static void make_page(struct ljob *ljob)
{
    struct page *page = container_of(ljob, struct page, ljob);

    metrics_render(page->metrics, page->format, &page->text);
}

static int push_page(lua_State *L, struct ljob *ljob)
{
    struct page *page = container_of(ljob, struct page, ljob);

    if (page->text.failed)
        return lerror_nil(L, "too_large", "the metrics take more than %d bytes",
                          METRICS_TEXT_BYTES_MAX);
    lua_pushlstring(L, page->text.at ? page->text.at : "", page->text.len);
    return 1;
}

static void free_page(struct ljob *ljob)
{
    struct page *page = container_of(ljob, struct page, ljob);

    buf_fini(&page->text);
    free(page);
}

/* render(is_openmetrics) -> text | nil, err; waits */
static int render(lua_State *L)
{
    const struct env *env  = check_env(L);
    struct page      *page = ljob_new(L, sizeof(*page));

    page->ljob    = (struct ljob){ .work = make_page, .push = push_page, .free = free_page };
    page->metrics = env->metrics;
    page->format  = lua_toboolean(L, 1) ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
    buf_init(&page->text, METRICS_TEXT_BYTES_MAX);
    return ljob_start(L, &page->ljob, env->lane_file);
}

/* watch(): what costs time on the way of a request is counted too from now on */
static int watch(lua_State *L)
{
    metrics_watch(check_env(L)->metrics);
    return 0;
}

int lmetrics_open(lua_State *L)
{
    static const luaL_Reg COUNTER[] = { { "add", counter_add }, { NULL, NULL } };
    static const luaL_Reg GAUGE[] = { { "add", gauge_add }, { "set", gauge_set }, { NULL, NULL } };
    static const luaL_Reg HISTOGRAM[] = { { "observe", histogram_observe }, { NULL, NULL } };
    static const luaL_Reg FUNCTIONS[] = {
        { "define", define },
        { "render", render },
        { "watch", watch },
        { NULL, NULL },
    };

    lclass_add(L, COUNTER_METATABLE, COUNTER);
    lclass_add(L, GAUGE_METATABLE, GAUGE);
    lclass_add(L, HISTOGRAM_METATABLE, HISTOGRAM);
    lua_createtable(L, 0, ARRAY_LEN(FUNCTIONS));
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
