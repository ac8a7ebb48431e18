#include "http/route.h"

#include <stdlib.h>

#include "support/route_fixture.h"

/* --- bounds ---------------------------------------------------------------------------------------- */

TEST(a_segment_is_split_a_bounded_number_of_times)
{
    char path[8192];

    memset(path, '-', sizeof(path) - 1);
    path[0]                = '/';
    path[sizeof(path) - 1] = '\0';
    ROUTES("/:a<.+>-:b<.+>-:c<.+>-:d<.+>-:e<%d+>");
    lua_calls = 0;
    CHECK_INT(get(path), NOT_FOUND);
    CHECK(lua_calls <= 256);
}

/* Each level has a fixed and a plain child of the same name, so a careless search would go down
 * 2^12 ways of this trie for every path; the trie has only so many nodes. */
TEST(a_search_visits_each_node_once)
{
    char     text[256], *at;
    unsigned seed = 1, ids = 0;

    open_set();
    for (unsigned way = 0; way < 1u << 12; way++) {
        at = text;
        for (unsigned level = 0; level < 12; level++)
            at += sprintf(at, way >> level & 1 ? "/:p<%%d+>" : "/:p");
        sprintf(at, "/end%u", seed++);
        CHECK_INT(add(text, GET), ids++);
    }
    route_set_seal(set);
    lua_calls = 0;
    CHECK_INT(get("/1/1/1/1/1/1/1/1/1/1/1/1/none"), NOT_FOUND);
    CHECK(lua_calls < 2u << 12);
}

/* --- against an oracle ------------------------------------------------------------------------------ */

/* The table of API section 2, read naively: every route against the path, the best by its classes. */
static const char *const KINDS[] = { "a", "b", "1", ":p", ":p<int>", ":p<a|1>", "a:p", "*p", "" };
static const char *const TEXTS[] = { "a", "b", "1", "ab", "a1", "" };

enum { KIND_TAIL = 7, KINDS_COUNT = 9, TEXTS_COUNT = 6, DEPTH_MAX = 4 };

struct route_case {
    unsigned kinds[DEPTH_MAX], count, method;
};

static unsigned next_random(unsigned bound)
{
    static uint64_t state = 42;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % bound;
}

static bool kind_fits(unsigned kind, const char *text)
{
    switch (kind) {
    case 0:
    case 1:
    case 2:
    case 8: return strcmp(KINDS[kind], text) == 0;
    case 3: return *text != '\0';
    case 4: return strcmp(text, "1") == 0;
    case 5: return strcmp(text, "a") == 0 || strcmp(text, "1") == 0;
    case 6: return text[0] == 'a' && text[1];
    }
    return false;
}

static int kind_class(unsigned kind)
{
    static const int CLASSES[KINDS_COUNT] = { 0, 0, 0, 2, 1, 1, 1, 3, 0 };

    return CLASSES[kind];
}

static bool case_fits(const struct route_case *route, const char *const *texts, unsigned count)
{
    for (unsigned i = 0; i < route->count; i++) {
        if (route->kinds[i] == KIND_TAIL)
            return true;
        if (i == count || !kind_fits(route->kinds[i], texts[i]))
            return false;
    }
    return route->count == count;
}

static int compare_cases(const struct route_case *a, const struct route_case *b)
{
    for (unsigned i = 0; i < a->count && i < b->count; i++)
        if (kind_class(a->kinds[i]) != kind_class(b->kinds[i]))
            return kind_class(a->kinds[i]) - kind_class(b->kinds[i]);
    return (int)a->count - (int)b->count;
}

static void random_case(struct route_case *route, char *text)
{
    route->count  = 1 + next_random(DEPTH_MAX);
    route->method = next_random(3);
    for (unsigned i = 0; i < route->count; i++) {
        route->kinds[i] = next_random(KINDS_COUNT);
        /* Empty at the end would be the slash there. */
        if (route->kinds[i] == 8 && i + 1 == route->count)
            route->kinds[i] = 0;
        text += sprintf(text, "/%s", KINDS[route->kinds[i]]);
        if (route->kinds[i] == KIND_TAIL)
            route->count = i + 1;
    }
}

static void check_path(const struct route_case *routes, unsigned count)
{
    const char      *texts[DEPTH_MAX];
    char             path[64], *at = path;
    unsigned         depth = 1 + next_random(DEPTH_MAX), method = next_random(3);
    int              best     = -1;
    bool             has_path = false;
    enum route_found found;

    for (unsigned i = 0; i < depth; i++) {
        texts[i] = TEXTS[next_random(TEXTS_COUNT - (i + 1 == depth))];
        at += sprintf(at, "/%s", texts[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        if (!case_fits(&routes[i], texts, depth))
            continue;
        has_path = true;
        if (routes[i].method == method &&
            (best < 0 || compare_cases(&routes[i], &routes[best]) < 0))
            best = (int)i;
    }
    found = find((int)(ROUTE_POST + (method == 2 ? 25 : method)), path);
    CHECK_INT(found, best >= 0 ? ROUTE_FOUND : has_path ? ROUTE_NO_METHOD : ROUTE_NOT_FOUND);
    if (best >= 0)
        CHECK_INT(match.route, best);
}

TEST(random_sets_agree_with_trying_every_route)
{
    struct route_case routes[24];

    for (unsigned round = 0; round < 2000; round++) {
        unsigned count = 0, wanted = 1 + next_random(24);

        open_set();
        for (unsigned tries = 0; tries < wanted; tries++) {
            char text[64];

            random_case(&routes[count], text);
            if (add(text,
                    ROUTE_METHOD_BIT(ROUTE_POST +
                                     (routes[count].method == 2 ? 25 : routes[count].method))) >= 0)
                count++;
        }
        route_set_seal(set);
        for (unsigned i = 0; i < 50; i++)
            check_path(routes, count);
    }
}

int main(void)
{
    return route_main();
}
