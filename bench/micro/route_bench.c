/* What finding a route costs in an app of 41 routes: ns of CPU time for each match, the best of
 * several rounds. Prints a table with tabs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "http/route.h"

static const char *const ROUTES[] = {
    "/",
    "/about",
    "/contact",
    "/login",
    "/logout",
    "/signup",
    "/pricing",
    "/docs",
    "/docs/:page",
    "/blog",
    "/blog/:slug",
    "/blog/:slug/comments",
    "/users",
    "/users/:id",
    "/users/:id/posts",
    "/users/:id/posts/:post",
    "/users/:id/followers",
    "/users/:id/following",
    "/orgs/:org",
    "/orgs/:org/members",
    "/orgs/:org/members/:member",
    "/orgs/:org/repos",
    "/orgs/:org/repos/:repo",
    "/search",
    "/api/v1/status",
    "/api/v1/items",
    "/api/v1/items/:id<int>",
    "/api/v1/items/:id/history",
    "/api/v1/orders",
    "/api/v1/orders/:id",
    "/api/v1/orders/:id/lines/:line",
    "/news",
    "/news/:id",
    "/news/tags/:tag",
    "/img/:file.png",
    "/near/:lat-:lng",
    "/files/*path",
    "/health",
    "/metrics",
    "/ws/rooms/:room<slug>",
    "/admin/*rest",
};

static const char *const PATHS[] = {
    "/",
    "/health",
    "/users/123",
    "/users/123/posts/456",
    "/api/v1/items/77",
    "/blog/a-b",
    "/near/48.1-11.5",
    "/files/css/site.css",
    "/img/black%20cat.png",
    "/none/here",
};

enum { ROUNDS = 7, TURNS = 1000 * 1000 };

static double now_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static struct route_set *make_set(void)
{
    struct route_set *set = route_set_new();

    for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++) {
        struct err        err;
        int               earlier;
        struct route_spec spec = { .pattern = route_pattern_new(str_of(ROUTES[i]), &err),
                                   .methods = ROUTE_METHOD_BIT(ROUTE_GET) };

        if (!spec.pattern || route_set_add(set, &spec, &earlier) < 0)
            abort();
    }
    route_set_seal(set);
    return set;
}

/* The barrier makes the compiler forget what it knows of the query. */
static double match_ns(const struct route_set *set, struct route_query *query)
{
    struct route_match match;
    double             start = now_ns();

    for (unsigned turn = 0; turn < TURNS; turn++) {
        __asm__ volatile("" : : "r"(query) : "memory");
        route_set_match(set, query, &match);
        if (turn % 64 == 0)
            arena_reset(query->arena);
    }
    return (now_ns() - start) / TURNS;
}

static double best_ns(const struct route_set *set, struct route_query *query)
{
    double best = match_ns(set, query);

    for (unsigned round = 1; round < ROUNDS; round++) {
        double ns = match_ns(set, query);

        best = ns < best ? ns : best;
    }
    return best;
}

int main(void)
{
    struct route_set *set = make_set();
    struct arena_pool pool;
    struct arena      arena;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    printf("path\tns\n");
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        struct route_query query = {
            .method = ROUTE_GET, .path = str_of(PATHS[i]), .after = -1, .arena = &arena
        };

        printf("%s\t%.1f\n", PATHS[i], best_ns(set, &query));
    }
    arena_reset(&arena);
    arena_pool_fini(&pool);
    route_set_free(set);
    return 0;
}
