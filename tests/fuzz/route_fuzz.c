/* Lines of the input are patterns, the last is a path. Whatever they are: the set's answer is a
 * route that matches alone too, passing on visits each matching route once and ends, and a prefix
 * that always covers a route covers the paths that this route takes. links: srv_http */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/route.h"

enum { ROUTES_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

/* Stands for any Lua pattern: values of even length fit. */
static bool accepts(void *arg, struct str lua_pattern, struct str value)
{
    return value.len % 2 == 0;
}

static struct route_set *set_of(const struct str *texts, unsigned count, enum route_slash slash)
{
    struct route_set *set = route_set_new();

    for (unsigned i = 0; i < count; i++) {
        struct err        err;
        struct route_spec spec = { .methods = ROUTE_METHODS_ALL, .slash = slash };
        int               earlier;

        spec.pattern = route_pattern_new(texts[i], &err);
        if (spec.pattern && route_set_add(set, &spec, &earlier) < 0)
            route_pattern_free(spec.pattern);
    }
    route_set_seal(set);
    return set;
}

static enum route_found find(const struct route_set *set, struct str path, int after,
                             struct arena *arena, struct route_match *match)
{
    struct route_query query = {
        .method = ROUTE_GET, .path = path, .after = after, .accepts = accepts, .arena = arena
    };

    return route_set_match(set, &query, match);
}

static bool is_hit(enum route_found found)
{
    return found == ROUTE_FOUND || found == ROUTE_MOVED || found == ROUTE_BAD_ESCAPE;
}

static void check_prefix(const struct route_pattern *route, struct str prefix_text, struct str path,
                         struct arena *arena)
{
    struct err            err;
    struct route_pattern *prefix = route_pattern_new(prefix_text, &err);
    struct str            params[ROUTE_PARAMS_MAX];
    ptrdiff_t             taken;

    if (!prefix)
        return;
    taken = route_prefix_match(prefix, path, accepts, NULL, arena, params);
    must(taken <= (ptrdiff_t)path.len);
    if (route_prefix_check(prefix, &err) == 0)
        switch (route_prefix_covers(prefix, route)) {
        case ROUTE_COVERS_ALWAYS: must(taken >= 0); break;
        case ROUTE_COVERS_NEVER: must(taken < 0); break;
        case ROUTE_COVERS_MAYBE: break;
        }
    route_pattern_free(prefix);
}

static unsigned count_alone(const struct str *texts, unsigned count, enum route_slash slash,
                            const struct route_set *all, struct str path, struct arena *arena)
{
    struct route_match match;
    unsigned           hits = 0;

    for (unsigned i = 0; i < route_set_count(all); i++) {
        struct str        text = route_pattern_text(route_set_pattern(all, i));
        struct route_set *one  = set_of(&text, 1, slash);

        if (is_hit(find(one, path, -1, arena, &match))) {
            hits++;
            for (unsigned p = 0; p < count; p++)
                check_prefix(route_set_pattern(one, 0), texts[p], path, arena);
        }
        route_set_free(one);
    }
    return hits;
}

static void check_set(const struct str *texts, unsigned count, enum route_slash slash,
                      struct str path, struct arena *arena)
{
    struct route_set  *set  = set_of(texts, count, slash);
    unsigned           hits = 0, seen = 0;
    struct route_match match;

    for (int after = -1; is_hit(find(set, path, after, arena, &match)); after = match.rank) {
        must(match.rank > after && match.route < route_set_count(set));
        must(!(seen & 1u << match.route));
        seen |= 1u << match.route;
        hits++;
    }
    must(hits == count_alone(texts, count, slash, set, path, arena));
    route_set_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str        rest  = str_make((const char *)bytes, len), texts[ROUTES_MAX];
    unsigned          count = 0;
    struct arena_pool pool;
    struct arena      arena;

    while (count < ROUTES_MAX) {
        size_t end = str_find(rest, '\n');

        if (end == rest.len)
            break;
        texts[count++] = str_make(rest.at, end);
        rest           = str_from(rest, end + 1);
    }
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    for (int slash = ROUTE_SLASH_IGNORE; slash <= ROUTE_SLASH_REDIRECT; slash++)
        check_set(texts, count, slash, rest, &arena);
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return 0;
}
