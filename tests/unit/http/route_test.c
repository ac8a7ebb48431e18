#include "http/route.h"

#include "base/buf.h"
#include "support/route_fixture.h"

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

int main(void)
{
    return route_main();
}
