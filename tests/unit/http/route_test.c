#include "http/route.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "support/check.h"

#define GET  ROUTE_METHOD_BIT(ROUTE_GET)
#define HEAD ROUTE_METHOD_BIT(ROUTE_HEAD)
#define POST ROUTE_METHOD_BIT(ROUTE_POST)
#define PUT  ROUTE_METHOD_BIT(ROUTE_PUT)

/* --- a set under test -------------------------------------------------------------------------- */

static struct arena_pool  pool;
static struct arena       arena;
static struct route_set  *set;
static struct route_match match;
static unsigned           lua_calls;

/* Stands for Lua's patterns: "%d+" is digits, ".+" is anything. */
static bool accepts(void *arg, struct str lua_pattern, struct str value)
{
    lua_calls++;
    if (!str_is(lua_pattern, STR("%d+")))
        return str_is(lua_pattern, STR(".+"));
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    return true;
}

static void open_set(void)
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

static struct route_pattern *pattern(const char *text)
{
    struct err            err;
    struct route_pattern *made = route_pattern_new(str_of(text), &err);

    if (!made)
        fprintf(stderr, "%s: %s\n", text, err.text);
    CHECK(made != NULL);
    return made;
}

static int add_as(const char *text, uint64_t methods, enum route_slash slash, bool fallback)
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

static int add(const char *text, uint64_t methods)
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

static enum route_found find_after(int method, const char *path, int after)
{
    struct route_query query = {
        .method = method, .path = str_of(path), .after = after, .accepts = accepts, .arena = &arena
    };

    return route_set_match(set, &query, &match);
}

static enum route_found find(int method, const char *path)
{
    return find_after(method, path, -1);
}

/* The id that GET finds; -1 - outcome for anything but ROUTE_FOUND. */
static int get(const char *path)
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

/* --- segments ---------------------------------------------------------------------------------- */

TEST(fixed_text_matches_itself_alone)
{
    ROUTES("/", "/users", "/users/all", "/a%20b", "/caf\xc3\xa9", "/x::y", "/z**");
    CHECK_INT(get("/"), 0);
    CHECK_INT(get("/users"), 1);
    CHECK_INT(get("/users/all"), 2);
    CHECK_INT(get("/a%20b"), 3);
    CHECK_INT(get("/caf%C3%A9"), 4);
    CHECK_INT(get("/caf\xc3\xa9"), 4);
    CHECK_INT(get("/x:y"), 5);
    CHECK_INT(get("/z*"), 6);
    CHECK_INT(get("/Users"), NOT_FOUND);
    CHECK_INT(get("/user"), NOT_FOUND);
    CHECK_INT(get("/usersx"), NOT_FOUND);
    CHECK_INT(get("/users/all/1"), NOT_FOUND);
    CHECK_INT(get("*"), NOT_FOUND);
    CHECK_INT(get(""), NOT_FOUND);
}

TEST(an_escaped_letter_is_that_letter)
{
    ROUTES("/users/:id");
    CHECK_INT(get("/%75sers/%31"), 0);
    CHECK_PARAM(0, "1");
}

TEST(a_parameter_is_one_segment_and_not_empty)
{
    ROUTES("/users/:id", "/users/:id/posts/:post_2");
    CHECK_INT(get("/users/7"), 0);
    CHECK_INT(match.param_count, 1);
    CHECK_PARAM(0, "7");
    CHECK_INT(get("/users/7/posts/9"), 1);
    CHECK_PARAM(0, "7");
    CHECK_PARAM(1, "9");
    CHECK_INT(get("/users/"), NOT_FOUND);
    CHECK_INT(get("/users//"), NOT_FOUND);
    CHECK_INT(get("/users//posts/9"), NOT_FOUND);
    CHECK_INT(get("/users/7/posts"), NOT_FOUND);
}

TEST(a_segment_is_decoded_once_and_keeps_its_slash)
{
    ROUTES("/f/:name", "/f/:name/x");
    CHECK_INT(get("/f/a%2Fb"), 0);
    CHECK_PARAM(0, "a/b");
    CHECK_INT(get("/f/a%252Fb"), 0);
    CHECK_PARAM(0, "a%2Fb");
    CHECK_INT(get("/f/%e4%b8%ad/x"), 1);
    CHECK_PARAM(0, "\xe4\xb8\xad");
    CHECK_INT(get("/f/a+b"), 0);
    CHECK_PARAM(0, "a+b");
    CHECK_INT(get("/f/a%00b"), 0);
    CHECK_INT(match.params[0].len, 3);
}

TEST(a_bad_escape_is_told_where_a_parameter_would_take_it)
{
    ROUTES("/f/:name", "/fixed", "/n/:id<int>", "/w/*rest", "/x/:a-:b", "/%25zz");
    CHECK_INT(get("/f/%"), BAD_ESCAPE);
    CHECK_INT(get("/f/%zz"), BAD_ESCAPE);
    CHECK_INT(get("/f/a%2"), BAD_ESCAPE);
    CHECK_INT(get("/w/a/%f"), BAD_ESCAPE);
    CHECK_INT(get("/x/a-%f"), BAD_ESCAPE);
    CHECK_INT(get("/fixe%"), NOT_FOUND);
    CHECK_INT(get("/n/%zz"), NOT_FOUND);
    CHECK_INT(get("/%zz"), NOT_FOUND);
    CHECK_INT(get("/%25zz"), 5);
}

TEST(an_optional_segment_may_be_missing_with_its_slash)
{
    ROUTES("/opt/:name?", "/num/:id<int>?");
    CHECK_INT(get("/opt/x"), 0);
    CHECK_PARAM(0, "x");
    CHECK_INT(get("/opt"), 0);
    CHECK(match.params[0].at == NULL);
    CHECK_INT(match.param_count, 1);
    CHECK_INT(get("/opt/"), 0);
    CHECK(match.params[0].at == NULL);
    CHECK_INT(get("/opt/x/y"), NOT_FOUND);
    CHECK_INT(get("/num/7"), 1);
    CHECK_INT(get("/num"), 1);
    CHECK_INT(get("/num/x"), NOT_FOUND);

    ROUTES("/:page?");
    CHECK_INT(get("/"), 0);
    CHECK(match.params[0].at == NULL);
    CHECK_INT(get("/news"), 0);
    CHECK_PARAM(0, "news");
}

TEST(a_wildcard_takes_the_rest_and_nothing_too)
{
    ROUTES("/files/*path", "/raw/*");
    CHECK_INT(get("/files/a/b%20c/d"), 0);
    CHECK_PARAM(0, "a/b c/d");
    CHECK_INT(get("/files/"), 0);
    CHECK_PARAM(0, "");
    CHECK_INT(get("/files"), 0);
    CHECK_PARAM(0, "");
    CHECK_INT(get("/files//a/"), 0);
    CHECK_PARAM(0, "/a/");
    CHECK_INT(get("/raw/x"), 1);
    CHECK_MEM(route_pattern_param(route_set_pattern(set, 1), 0)->name.at, 1, "*", 1);
    CHECK_INT(get("/filesx"), NOT_FOUND);

    ROUTES("/*all");
    CHECK_INT(get("/"), 0);
    CHECK_PARAM(0, "");
    CHECK_INT(get("//"), 0);
    CHECK_PARAM(0, "/");
}

TEST(several_parameters_share_a_segment)
{
    ROUTES("/near/:lat-:lng", "/img/:file.png", "/v:major.:minor", "/a:x::y", "/p/pre:x",
           "/post/:slug<slug>-:id<int>");
    CHECK_INT(get("/near/48.1-11.5"), 0);
    CHECK_PARAM(0, "48.1");
    CHECK_PARAM(1, "11.5");
    CHECK_INT(get("/near/-48--11"), 0); /* each takes as little as it can, but something */
    CHECK_PARAM(0, "-48");
    CHECK_PARAM(1, "-11");
    CHECK_INT(get("/near/-"), NOT_FOUND);
    CHECK_INT(get("/near/1-"), NOT_FOUND);
    CHECK_INT(get("/img/a.png.png"), 1);
    CHECK_PARAM(0, "a.png");
    CHECK_INT(get("/img/.png"), NOT_FOUND);
    CHECK_INT(get("/img/a.jpg"), NOT_FOUND);
    CHECK_INT(get("/v1.2.3"), 2);
    CHECK_PARAM(0, "1");
    CHECK_PARAM(1, "2.3");
    CHECK_INT(get("/a1:y"), 3);
    CHECK_PARAM(0, "1");
    CHECK_INT(get("/p/prefix"), 4);
    CHECK_PARAM(0, "fix");
    CHECK_INT(get("/p/pre"), NOT_FOUND);
    CHECK_INT(get("/post/how-to-7"), 5); /* splits again when a type does not fit */
    CHECK_PARAM(0, "how-to");
    CHECK_PARAM(1, "7");
    CHECK_INT(get("/post/how%2Dto-7"), 5);
    CHECK_INT(get("/post/how-to-x"), NOT_FOUND);
}

TEST(types_are_exact)
{
    static const struct {
        const char *type;
        const char *good[8], *bad[12];
    } CASES[] = {
        { "int",
          { "0", "-1", "007", "9007199254740992", "-9007199254740992" },
          { "x", "1.0", "+1", "-", "1e3", "9007199254740993", "99999999999999999999", "0x1",
            "1 " } },
        { "number",
          { "0", "-1.5", "1e3", "1E-7", "0.1" },
          { ".5", "1.", "1e", "1e+", "nan", "inf", "0x1", "1.5.2", "-", "+1" } },
        { "uuid",
          { "01234567-89ab-cdef-0123-456789abcdef", "01234567-89AB-CDEF-0123-456789ABCDEF" },
          { "01234567-89ab-cdef-0123-456789abcde", "0123456789abcdef0123456789abcdef",
            "01234567-89ab-cdef-0123-456789abcdeg", "01234567_89ab-cdef-0123-456789abcdef" } },
        { "slug", { "a", "a-1", "7" }, { "A", "a_b", "a.b", "a%20b" } },
        { "hex", { "0", "dead", "BEEF" }, { "g", "0x1", "-1" } },
        { "date",
          { "2024-02-29", "2000-02-29", "2023-12-31" },
          { "2023-02-29", "1900-02-29", "2023-13-01", "2023-00-10", "2023-01-00", "2023-04-31",
            "2023-1-1", "2023-01-32", "2023/01/01", "20230101xx" } },
        { "en|de", { "en", "de" }, { "e", "fr", "en|de", "EN", "d" } },
        { "%d+", { "0", "123" }, { "a", "1a" } },
    };

    for (size_t c = 0; c < sizeof(CASES) / sizeof(CASES[0]); c++) {
        char text[64], path[128];

        snprintf(text, sizeof(text), "/:v<%s>", CASES[c].type);
        open_set();
        add(text, GET);
        route_set_seal(set);
        for (size_t i = 0; i < 8 && CASES[c].good[i]; i++) {
            snprintf(path, sizeof(path), "/%s", CASES[c].good[i]);
            CHECK_INT(get(path), 0);
            CHECK_PARAM(0, CASES[c].good[i]);
        }
        for (size_t i = 0; i < 12 && CASES[c].bad[i]; i++) {
            snprintf(path, sizeof(path), "/%s", CASES[c].bad[i]);
            CHECK_INT(get(path), NOT_FOUND);
        }
    }
}

TEST(a_type_may_hold_a_slash_and_an_escaped_bracket)
{
    struct route_pattern *made = pattern("/:a<[^/]+>/:b<%>+>");

    CHECK_INT(route_pattern_segments(made), 2);
    CHECK_MEM(route_pattern_param(made, 0)->rule.at, route_pattern_param(made, 0)->rule.len,
              "[^/]+", 5);
    CHECK_MEM(route_pattern_param(made, 1)->rule.at, route_pattern_param(made, 1)->rule.len, "%>+",
              3);
    route_pattern_free(made);
}

TEST(without_a_callback_lua_patterns_accept_nothing)
{
    struct route_query query = { .path = STR("/7"), .method = ROUTE_GET, .after = -1 };

    ROUTES("/:id<%d+>");
    query.arena = &arena;
    CHECK_INT(route_set_match(set, &query, &match), ROUTE_NOT_FOUND);
}

/* --- precedence -------------------------------------------------------------------------------- */

TEST(fixed_beats_typed_beats_plain_beats_wildcard_whatever_the_order)
{
    ROUTES("/u/*rest", "/u/:name", "/u/:id<int>", "/u/x:rest", "/u/me");
    CHECK_INT(get("/u/me"), 4);
    CHECK_INT(get("/u/7"), 2);
    CHECK_INT(get("/u/xy"), 3);
    CHECK_INT(get("/u/you"), 1);
    CHECK_INT(get("/u/a/b"), 0);
    CHECK_INT(get("/u"), 0);
}

TEST(segments_on_the_left_weigh_more)
{
    ROUTES("/:a/b", "/a/:b", "/a/*rest", "/:a/:b");
    CHECK_INT(get("/a/b"), 1);
    CHECK_INT(get("/x/b"), 0);
    CHECK_INT(get("/x/y"), 3);
    CHECK_INT(get("/a/y"), 1);
    CHECK_INT(get("/a/y/z"), 2);
}

TEST(matching_backs_up_when_a_branch_fails)
{
    ROUTES("/a/b/c", "/a/:x/d", "/:y/b/e", "/*rest");
    CHECK_INT(get("/a/b/c"), 0);
    CHECK_INT(get("/a/b/d"), 1);
    CHECK_PARAM(0, "b");
    CHECK_INT(get("/a/b/e"), 2);
    CHECK_PARAM(0, "a");
    CHECK_INT(get("/a/b/f"), 3);
    CHECK_PARAM(0, "a/b/f");
}

TEST(between_equals_the_earlier_comes_first)
{
    ROUTES("/:a<int>/x", "/:b<hex>/x", "/v:n", "/:n.txt");
    CHECK_INT(get("/7/x"), 0);
    CHECK_INT(get("/f/x"), 1);
    CHECK_INT(get("/v.txt"), 2);
}

TEST(equals_on_the_left_do_not_hide_a_better_right)
{
    ROUTES("/:a<int>/:rest", "/:b<hex>/edit");
    CHECK_INT(get("/7/edit"), 1); /* typed/fixed beats typed/plain, though it came later */
    CHECK_PARAM(0, "7");
    CHECK_INT(get("/7/other"), 0);
    ROUTES("/:b<hex>/edit", "/:a<int>/:rest");
    CHECK_INT(get("/7/edit"), 0);
}

TEST(an_end_beats_a_missing_option_beats_an_empty_wildcard)
{
    ROUTES("/a/*rest", "/a/:x?", "/a");
    CHECK_INT(get("/a"), 2);
    CHECK_INT(find_after(ROUTE_GET, "/a", match.rank), ROUTE_FOUND);
    CHECK_INT(match.route, 1);
    CHECK_INT(find_after(ROUTE_GET, "/a", match.rank), ROUTE_FOUND);
    CHECK_INT(match.route, 0);
    CHECK_INT(find_after(ROUTE_GET, "/a", match.rank), ROUTE_NOT_FOUND);
}

/* --- passing, fallbacks, conflicts ---------------------------------------------------------------- */

TEST(passing_goes_through_every_match_in_order_of_precedence)
{
    int seen[8], count = 0;

    ROUTES("/*a", "/u/:x", "/u/me", "/u/:y<slug>", "/other", "/u/*b");
    for (int after = -1; find_after(ROUTE_GET, "/u/me", after) == ROUTE_FOUND; after = match.rank)
        seen[count++] = (int)match.route;
    CHECK_INT(count, 5);
    CHECK_INT(seen[0], 2);
    CHECK_INT(seen[1], 3);
    CHECK_INT(seen[2], 1);
    CHECK_INT(seen[3], 5);
    CHECK_INT(seen[4], 0);
}

TEST(a_fallback_is_no_conflict_and_comes_second)
{
    open_set();
    CHECK_INT(add_as("/a/:x", GET, ROUTE_SLASH_IGNORE, true), 0);
    CHECK_INT(add("/a/:y", GET), 1);
    CHECK_INT(add_as("/a/:z", GET, ROUTE_SLASH_IGNORE, true), 2);
    route_set_seal(set);
    CHECK_INT(get("/a/1"), 1);
    CHECK_INT(find_after(ROUTE_GET, "/a/1", match.rank), ROUTE_FOUND);
    CHECK_INT(match.route, 0);
    CHECK_INT(find_after(ROUTE_GET, "/a/1", match.rank), ROUTE_FOUND);
    CHECK_INT(match.route, 2);
    CHECK_INT(find_after(ROUTE_GET, "/a/1", match.rank), ROUTE_NOT_FOUND);
}

TEST(the_same_pattern_and_method_twice_is_a_conflict)
{
    open_set();
    CHECK_INT(add("/u/:id", GET | POST), 0);
    CHECK_INT(add("/u/:name", PUT), 1);
    CHECK_INT(add("/u/:name", POST | PUT), -2);
    CHECK_INT(add("/u/:id<int>", GET), 2);
    CHECK_INT(add("/u/:nr<int>", GET), -4);
    CHECK_INT(add("/u/:nr<hex>", GET), 3);
    CHECK_INT(add("/u/:name?", GET), -2);
    CHECK_INT(add("/u", GET), 4);
    CHECK_INT(add("/u/", GET), -6);
    CHECK_INT(add("/f/*a", GET), 5);
    CHECK_INT(add("/f/*b", GET), -7);
    CHECK_INT(add("/x%41", GET), 6);
    CHECK_INT(add("/xA", ROUTE_METHODS_ALL), -8);
    route_set_seal(set);
    CHECK_INT(route_set_count(set), 7);
    CHECK_INT(get("/u/abc"), 3);
}

/* --- methods ------------------------------------------------------------------------------------ */

TEST(the_method_is_looked_at_last)
{
    open_set();
    add("/u/me", GET);
    add("/u/:id", PUT | POST);
    add("/u/*rest", ROUTE_METHOD_BIT(ROUTE_PATCH));
    add("/other", ROUTE_METHOD_BIT(ROUTE_DELETE));
    route_set_seal(set);
    CHECK_INT(find(ROUTE_PUT, "/u/me"), ROUTE_FOUND);
    CHECK_INT(match.route, 1);
    CHECK_PARAM(0, "me");
    CHECK_INT(find(ROUTE_PATCH, "/u/me"), ROUTE_FOUND);
    CHECK_INT(match.route, 2);
    CHECK_INT(find(ROUTE_DELETE, "/u/me"), ROUTE_NO_METHOD);
    CHECK(match.allowed == (GET | HEAD | PUT | POST | ROUTE_METHOD_BIT(ROUTE_PATCH)));
    CHECK_INT(find(ROUTE_DELETE, "/nothing"), ROUTE_NOT_FOUND);
    CHECK_INT(find(ROUTE_OPTIONS, "/u/me"), ROUTE_NO_METHOD);
}

TEST(head_is_served_by_get_unless_it_has_its_own)
{
    open_set();
    add("/a", GET);
    add("/b", GET);
    add("/b", HEAD);
    add("/c/:x", HEAD);
    add("/c/d", GET);
    add("/e", GET);
    add_as("/e", ROUTE_METHODS_ALL, ROUTE_SLASH_IGNORE, true);
    route_set_seal(set);
    CHECK_INT(find(ROUTE_HEAD, "/a"), ROUTE_FOUND);
    CHECK_INT(match.route, 0);
    CHECK_INT(find(ROUTE_HEAD, "/b"), ROUTE_FOUND);
    CHECK_INT(match.route, 2);
    CHECK_INT(find(ROUTE_GET, "/b"), ROUTE_FOUND);
    CHECK_INT(match.route, 1);
    CHECK_INT(find(ROUTE_HEAD, "/c/d"), ROUTE_FOUND);
    CHECK_INT(match.route, 4);
    CHECK_INT(find(ROUTE_HEAD, "/e"), ROUTE_FOUND);
    CHECK_INT(match.route, 5);
    CHECK_INT(find(ROUTE_DELETE, "/e"), ROUTE_FOUND);
    CHECK_INT(match.route, 6);
}

TEST(methods_have_the_parser_s_numbers)
{
    CHECK_INT(route_method_of(STR("DELETE")), 0);
    CHECK_INT(route_method_of(STR("GET")), ROUTE_GET);
    CHECK_INT(route_method_of(STR("M-SEARCH")), 24);
    CHECK_INT(route_method_of(STR("PATCH")), ROUTE_PATCH);
    CHECK_INT(route_method_of(STR("SOURCE")), ROUTE_METHOD_COUNT - 1);
    CHECK_INT(route_method_of(STR("get")), -1);
    CHECK_INT(route_method_of(STR("BREW")), -1);
    for (unsigned i = 0; i < ROUTE_METHOD_COUNT; i++)
        CHECK_INT(route_method_of(route_method_name(i)), i);
}

TEST(allow_lists_options_and_head)
{
    struct buf out;

    buf_init(&out, 1024);
    route_allow(GET | PUT, &out);
    buf_add_byte(&out, ';');
    route_allow(POST, &out);
    CHECK_MEM(out.at, out.len, "GET, HEAD, PUT, OPTIONS;POST, OPTIONS", 37);
    buf_fini(&out);
}

/* --- the slash at the end ------------------------------------------------------------------------- */

TEST(two_slashes_are_not_one)
{
    ROUTES("/", "/a", "/b//c");
    CHECK_INT(get("//"), NOT_FOUND);
    CHECK_INT(get("//a"), NOT_FOUND);
    CHECK_INT(get("/a//"), NOT_FOUND);
    CHECK_INT(get("/b/c"), NOT_FOUND);
    CHECK_INT(get("/b//c"), 2);
}

TEST(a_slash_at_the_end_is_ignored_strict_or_redirected)
{
    open_set();
    add("/ignore", GET);
    add("/also/", GET);
    add_as("/strict", GET, ROUTE_SLASH_STRICT, false);
    add_as("/dir/", GET, ROUTE_SLASH_STRICT, false);
    add_as("/both", GET, ROUTE_SLASH_STRICT, false);
    add_as("/both/", GET, ROUTE_SLASH_STRICT, false);
    add_as("/moved", GET, ROUTE_SLASH_REDIRECT, false);
    add_as("/there/:x/", GET, ROUTE_SLASH_REDIRECT, false);
    add_as("/tail/*x", GET, ROUTE_SLASH_REDIRECT, false);
    add_as("/exact/*x", GET, ROUTE_SLASH_STRICT, false);
    add_as("/mixed", GET, ROUTE_SLASH_IGNORE, false);
    add_as("/mixed/", GET, ROUTE_SLASH_STRICT, false);
    route_set_seal(set);

    CHECK_INT(get("/ignore/"), 0);
    CHECK_INT(get("/also"), 1);
    CHECK_INT(get("/strict"), 2);
    CHECK_INT(get("/strict/"), NOT_FOUND);
    CHECK_INT(get("/dir/"), 3);
    CHECK_INT(get("/dir"), NOT_FOUND);
    CHECK_INT(get("/both"), 4);
    CHECK_INT(get("/both/"), 5);
    CHECK_INT(get("/moved"), 6);
    CHECK_INT(find(ROUTE_GET, "/moved/"), ROUTE_MOVED);
    CHECK_INT(match.route, 6);
    CHECK_INT(get("/there/1/"), 7);
    CHECK_INT(find(ROUTE_GET, "/there/1"), ROUTE_MOVED);
    CHECK_INT(get("/tail/"), 8);
    CHECK_INT(get("/tail/a"), 8);
    CHECK_INT(find(ROUTE_GET, "/tail"), ROUTE_MOVED);
    CHECK_INT(get("/exact/"), 9);
    CHECK_INT(get("/exact"), NOT_FOUND);
    CHECK_INT(get("/mixed"), 10);
    CHECK_INT(get("/mixed/"), 11);
}

/* --- patterns that are refused -------------------------------------------------------------------- */

TEST(mistakes_in_patterns_are_named)
{
    static const char *const CASES[][2] = {
        { "users", "a path begins with" },
        { "/:", "without a name" },
        { "/:1", "without a name" },
        { "/:a:b", "nothing between" },
        { "/:a?/b", "\"?\" may only" },
        { "/x:a?", "\"?\" may only" },
        { "/x?", "\"?\" may only" },
        { "/:a??", "\"?\" may only" },
        { "/a*", "wildcard must be" },
        { "/*a/b", "wildcard must be" },
        { "/*a?", "wildcard must be" },
        { "/:a*", "wildcard must be" },
        { "/:a<int", "without \">\"" },
        { "/:a<>", "empty type" },
        { "/:a<integer>", "unknown type <integer>" },
        { "/:a<a||b>", "empty word" },
        { "/:a<a|>", "empty word" },
        { "/:a<%d|x>", "has no \"|\"" },
        { "/a<b>", "percent-encoded" },
        { "/a#b", "percent-encoded" },
        { "/100%", "two hex digits" },
        { "/%g0", "two hex digits" },
        { "/:a/:b/:c/:d/:e/:f/:g/:h/:i/:j/:k/:l/:m/:n/:o/:p/:q", "more than 16 parameters" },
        { "/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3",
          "more than 32 segments" },
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct err            err  = { 0 };
        struct route_pattern *made = route_pattern_new(str_of(CASES[i][0]), &err);

        if (made || !strstr(err.text, CASES[i][1]))
            fprintf(stderr, "%s -> %s\n", CASES[i][0], made ? "accepted" : err.text);
        CHECK(!made && strstr(err.text, CASES[i][1]));
    }
}

TEST(a_pattern_has_a_bound)
{
    static char text[ROUTE_PATTERN_BYTES_MAX + 2];
    struct err  err;

    memset(text, 'a', sizeof(text) - 1);
    text[0] = '/';
    CHECK(route_pattern_new(str_of(text), &err) == NULL);
    CHECK_INT(err.code, ERR_TOO_LARGE);
}

TEST(a_repeated_name_is_found)
{
    struct route_pattern *once = pattern("/:a/:b"), *twice = pattern("/:a/:b/:a");

    CHECK_INT(route_pattern_repeated(once), -1);
    CHECK_INT(route_pattern_repeated(twice), 2);
    route_pattern_free(once);
    route_pattern_free(twice);
}

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

/* --- prefixes ---------------------------------------------------------------------------------------- */

static enum route_cover covers(const char *prefix, const char *route)
{
    struct route_pattern *a = pattern(prefix), *b = pattern(route);
    enum route_cover      cover = route_prefix_covers(a, b);

    route_pattern_free(a);
    route_pattern_free(b);
    return cover;
}

TEST(a_prefix_covers_routes_always_never_or_maybe)
{
    CHECK_INT(covers("/", "/a/b"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("", "/"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin", "/admin"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin/", "/admin/x/:y"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin", "/administrator"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/admin/x", "/admin"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id/members"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id<int>"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs/me"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id?"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/orgs", "/orgs/:id?"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/me"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/7"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/:nr<int>/x"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/:any"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/orgs/:id<%d+>", "/orgs/7"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/:page"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/:id<int>"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/7", "/:id<int>"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/7", "/:id<%d+>"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/*all"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/files", "/files/*path"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/files/*", "/files/a"), ROUTE_COVERS_ALWAYS);
}

static ptrdiff_t taken(const char *prefix, const char *path)
{
    struct route_pattern *made = pattern(prefix);
    ptrdiff_t bytes = route_prefix_match(made, str_of(path), accepts, NULL, &arena, match.params);

    route_pattern_free(made);
    return bytes;
}

TEST(a_prefix_takes_whole_segments_of_a_path)
{
    open_set();
    CHECK_INT(taken("/", "/a"), 0);
    CHECK_INT(taken("/", "/"), 0);
    CHECK_INT(taken("/admin", "/admin"), 6);
    CHECK_INT(taken("/admin", "/admin/"), 6);
    CHECK_INT(taken("/admin/", "/admin/x"), 6);
    CHECK_INT(taken("/admin", "/%61dmin/x"), 8);
    CHECK_INT(taken("/admin", "/administrator"), -1);
    CHECK_INT(taken("/admin", "/"), -1);
    CHECK_INT(taken("/admin/x", "/admin"), -1);
    CHECK_INT(taken("/admin", "//admin"), -1);
    CHECK_INT(taken("//", "/"), -1);
    CHECK_INT(taken("/a", "*"), -1);
    CHECK_INT(taken("/orgs/:org", "/orgs/a%2Fb/members"), 11);
    CHECK_PARAM(0, "a/b");
    CHECK_INT(taken("/orgs/:org", "/orgs/%zz/members"), 9);
    CHECK_PARAM(0, "%zz");
    CHECK_INT(taken("/orgs/:org", "/orgs/"), -1);
    CHECK_INT(taken("/orgs/:org<int>", "/orgs/7"), 7);
    CHECK_INT(taken("/orgs/:org<%d+>", "/orgs/x"), -1);
    CHECK_INT(taken("/v:major.:minor", "/v1.2/x"), 5);
    CHECK_PARAM(1, "2");
    CHECK_INT(taken("/f/*rest", "/f/a/b"), 6);
    CHECK_PARAM(0, "a/b");
}

TEST(an_optional_parameter_has_no_place_in_a_prefix)
{
    struct route_pattern *optional = pattern("/a/:b?"), *plain = pattern("/a/:b");
    struct err            err;

    CHECK_INT(route_prefix_check(optional, &err), ERR_INVALID);
    CHECK_INT(route_prefix_check(plain, &err), 0);
    route_pattern_free(optional);
    route_pattern_free(plain);
}

TEST(a_mount_ends_behind_its_segments)
{
    CHECK_INT(route_path_skip(STR("/orgs/o1/members/m1"), 0), 0);
    CHECK_INT(route_path_skip(STR("/orgs/o1/members/m1"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs/o1"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs/o1/"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs"), 3), 5);
}

/* --- building ----------------------------------------------------------------------------------------- */

static int build(const char *text, const char *first, const char *second, struct buf *out)
{
    struct route_pattern *made = pattern(text);
    struct str values[2] = { first ? str_of(first) : STR_NONE, second ? str_of(second) : STR_NONE };
    struct err err;
    int        rc;

    buf_clear(out);
    rc = route_pattern_build(made, values, accepts, NULL, out, &err);
    route_pattern_free(made);
    return rc;
}

TEST(a_path_is_built_from_values_and_found_again)
{
    struct buf out;

    buf_init(&out, 256);
    CHECK_INT(build("/news/:id<int>", "7", NULL, &out), 0);
    CHECK_MEM(out.at, out.len, "/news/7", 7);
    CHECK_INT(build("/f/:a/:b.png", "a/b c", "\xc3\xa9", &out), 0);
    CHECK_MEM(out.at, out.len, "/f/a%2Fb%20c/%C3%A9.png", 23);
    CHECK_INT(build("/f/*path", "a b/c", NULL, &out), 0);
    CHECK_MEM(out.at, out.len, "/f/a%20b/c", 10);
    CHECK_INT(build("/opt/:x?", NULL, NULL, &out), 0);
    CHECK_MEM(out.at, out.len, "/opt", 4);
    CHECK_INT(build("/:x?", NULL, NULL, &out), 0);
    CHECK_MEM(out.at, out.len, "/", 1);
    CHECK_INT(build("/a/", NULL, NULL, &out), 0);
    CHECK_MEM(out.at, out.len, "/a/", 3);
    CHECK_INT(build("/a::b", NULL, NULL, &out), 0);
    CHECK_INT(build("/x/:id", NULL, NULL, &out), ERR_INVALID);
    CHECK_INT(out.len, 0);
    CHECK_INT(build("/x/:id", "", NULL, &out), ERR_INVALID);
    CHECK_INT(build("/x/:id<int>", "seven", NULL, &out), ERR_INVALID);
    CHECK_INT(build("/x/:id<%d+>", "seven", NULL, &out), ERR_INVALID);
    CHECK_INT(build("/x/:id", "..", NULL, &out), ERR_INVALID);
    CHECK_INT(build("/f/*path", "a/../b", NULL, &out), ERR_INVALID);
    buf_fini(&out);
}

/* --- hosts --------------------------------------------------------------------------------------------- */

static bool host_fits(const char *text, const char *host)
{
    struct err            err;
    struct route_pattern *made = route_host_new(str_of(text), &err);
    bool                  fits;

    CHECK(made != NULL);
    fits = route_host_match(made, str_of(host), accepts, NULL, &arena, match.params);
    route_pattern_free(made);
    return fits;
}

TEST(a_host_is_matched_by_its_labels_without_port_and_case)
{
    struct err err;

    open_set();
    CHECK(host_fits(":tenant.example.com", "acme.example.com"));
    CHECK_PARAM(0, "acme");
    CHECK(host_fits(":tenant.Example.com", "ACME.example.COM:8080"));
    CHECK_PARAM(0, "acme");
    CHECK(host_fits("example.com", "example.com."));
    CHECK(!host_fits(":tenant.example.com", "example.com"));
    CHECK(!host_fits(":tenant.example.com", ".example.com"));
    CHECK(!host_fits(":tenant.example.com", "a.b.example.com"));
    CHECK(!host_fits("example.com", "notexample.com"));
    CHECK(!host_fits("example.com", ""));
    CHECK(!host_fits("example.com", "[::1]:80"));
    CHECK(host_fits("*sub.example.com", "a.b.example.com"));
    CHECK_PARAM(0, "a.b");
    CHECK(!host_fits("*sub.example.com", "example.com"));
    CHECK(host_fits("*", "anything"));
    CHECK(host_fits(":app-:stage.example.com", "shop-test.example.com"));
    CHECK_PARAM(1, "test");
    CHECK(route_host_new(STR("a.*"), &err) == NULL);
    CHECK(route_host_new(STR("a..b"), &err) == NULL);
    CHECK(route_host_new(STR(":a?.b"), &err) == NULL);
    CHECK(route_host_new(STR(""), &err) == NULL);
}

int main(void)
{
    int status = check_run();

    route_set_free(set);
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return status;
}
