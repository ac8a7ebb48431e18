#include "http/route_pattern.h"

#include "base/buf.h"
#include "support/route_fixture.h"

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
    return route_main();
}
