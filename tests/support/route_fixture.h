/* tests/support/route_fixture.h - a set of routes under test, and how to ask it, for unit tests. Their
 * main() is route_main(). */
#ifndef TESTS_SUPPORT_ROUTE_FIXTURE_H
#define TESTS_SUPPORT_ROUTE_FIXTURE_H

#include "base/arena.h"
#include "base/err.h"
#include "http/route.h"
#include "support/check.h"

#define GET  ROUTE_METHOD_BIT(ROUTE_GET)
#define HEAD ROUTE_METHOD_BIT(ROUTE_HEAD)
#define POST ROUTE_METHOD_BIT(ROUTE_POST)
#define PUT  ROUTE_METHOD_BIT(ROUTE_PUT)

static struct arena_pool  pool;
static struct arena       arena;
static struct route_set  *set;
static struct route_match match;
static unsigned           lua_calls;

/* Stands for Lua's patterns: "%d+" is digits, ".+" is anything. */
static inline bool accepts(void *arg, struct str lua_pattern, struct str value)
{
    lua_calls++;
    if (!str_is(lua_pattern, STR("%d+")))
        return str_is(lua_pattern, STR(".+"));
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    return true;
}

static inline void open_set(void)
{
    static bool is_ready;

    if (!is_ready) {
        arena_pool_init(&pool, 8);
        arena_init(&arena, &pool);
        is_ready = true;
    }
    arena_reset(&arena);
    route_set_free(set);
    set = route_set_new();
}

static inline struct route_pattern *pattern(const char *text)
{
    struct err            err;
    struct route_pattern *made = route_pattern_new(str_of(text), &err);

    if (!made)
        fprintf(stderr, "%s: %s\n", text, err.text);
    CHECK(made != NULL);
    return made;
}

static inline int add_as(const char *text, uint64_t methods, enum route_slash slash, bool fallback)
{
    struct route_spec spec    = { pattern(text), methods, slash, fallback };
    int               earlier = -1;
    int               id      = route_set_add(set, &spec, &earlier);

    if (id >= 0)
        return id;
    CHECK_INT(id, ERR_EXISTS);
    route_pattern_free(spec.pattern);
    return -2 - earlier; /* -2: in conflict with 0, -3: with 1 ... */
}

static inline int add(const char *text, uint64_t methods)
{
    return add_as(text, methods, ROUTE_SLASH_IGNORE, false);
}

/* A sealed set of GET routes with the ids 0, 1, 2 ... */
#define ROUTES(...)                                                                                \
    do {                                                                                           \
        static const char *const texts_[] = { __VA_ARGS__ };                                       \
        open_set();                                                                                \
        for (size_t i_ = 0; i_ < sizeof(texts_) / sizeof(texts_[0]); i_++)                         \
            CHECK_INT(add(texts_[i_], GET), i_);                                                   \
        route_set_seal(set);                                                                       \
    } while (0)

static inline enum route_found find_after(int method, const char *path, int after)
{
    struct route_query query = {
        .method = method, .path = str_of(path), .after = after, .accepts = accepts, .arena = &arena
    };

    return route_set_match(set, &query, &match);
}

static inline enum route_found find(int method, const char *path)
{
    return find_after(method, path, -1);
}

/* The id that GET finds; -1 - outcome for anything but ROUTE_FOUND. */
static inline int get(const char *path)
{
    enum route_found found = find(ROUTE_GET, path);

    return found == ROUTE_FOUND ? (int)match.route : -1 - (int)found;
}

enum { NOT_FOUND = -1 - (int)ROUTE_NOT_FOUND, BAD_ESCAPE = -1 - (int)ROUTE_BAD_ESCAPE };

#define CHECK_PARAM(index, want)                                                                   \
    do {                                                                                           \
        CHECK(match.params[index].at != NULL);                                                     \
        CHECK_MEM(match.params[index].at, match.params[index].len, want, strlen(want));            \
    } while (0)

static inline int route_main(void)
{
    int status = check_run();

    route_set_free(set);
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return status;
}

#endif
