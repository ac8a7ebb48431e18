#include "http/url.h"

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "support/check.h"

static struct arena_pool pool;
static struct arena      arena;

static void begin(void)
{
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
}

static void finish(void)
{
    arena_reset(&arena);
    arena_pool_fini(&pool);
}

#define CHECK_SPAN(got, want)                                                                      \
    do {                                                                                           \
        struct str span = (got);                                                                   \
        CHECK_MEM(span.at, span.len, want, sizeof(want) - 1);                                      \
    } while (0)

TEST(escapes_are_decoded_once)
{
    begin();
    CHECK_SPAN(url_decode(&arena, STR("a%20b")), "a b");
    CHECK_SPAN(url_decode(&arena, STR("%252e")), "%2e");
    CHECK_SPAN(url_decode(&arena, STR("%c3%A9")), "\xc3\xa9");
    CHECK_SPAN(url_decode(&arena, STR("x%00y")), "x\0y");
    finish();
}

TEST(broken_escapes_stay)
{
    begin();
    CHECK_SPAN(url_decode(&arena, STR("%")), "%");
    CHECK_SPAN(url_decode(&arena, STR("a%4")), "a%4");
    CHECK_SPAN(url_decode(&arena, STR("%zz%41")), "%zzA");
    CHECK(!url_escapes_are_sound(STR("a%4")));
    CHECK(!url_escapes_are_sound(STR("%41%g0")));
    CHECK(url_escapes_are_sound(STR("%41%00b")));
    CHECK(url_escapes_are_sound(STR("")));
    finish();
}

TEST(plus_is_a_space_in_forms_only)
{
    begin();
    CHECK_SPAN(url_decode(&arena, STR("a+b")), "a+b");
    CHECK_SPAN(url_decode_form(&arena, STR("a+b%2B")), "a b+");
    finish();
}

TEST(text_without_escapes_is_not_copied)
{
    struct str plain = STR("plain");

    begin();
    CHECK(url_decode(&arena, plain).at == plain.at);
    CHECK(url_decode_form(&arena, plain).at == plain.at);
    finish();
}

TEST(climbing_paths_are_found_in_every_spelling)
{
    static const char *const climbing[] = { "/..",     "/../a",     "/a/..",      "/a/./b",
                                            "/.",      "/%2e%2E/a", "/.%2e",      "/..%2fa",
                                            "/a%5c..", "/a\\..\\b", "/%2e%2e%5C", "/a/..%2F" };
    static const char *const sound[]    = {
           "/",     "/a..b",       "/...",   "/.a", "/a./b", "/..a", "/%252e%252e%252f",
           "/a//b", "/..%c0%af..", "/a%2Fb", "*",   ""
    };

    for (unsigned i = 0; i < ARRAY_LEN(climbing); i++)
        CHECK(url_path_climbs(str_of(climbing[i])));
    for (unsigned i = 0; i < ARRAY_LEN(sound); i++)
        CHECK(!url_path_climbs(str_of(sound[i])));
}

TEST(pairs_come_in_order_and_decoded)
{
    struct url_pair *pairs;
    unsigned         count;

    begin();
    CHECK_INT(url_parse_query(&arena, STR("&a=1&&b=x+y&c&=v&a=%26%3d=z&"), 10, &pairs, &count), 0);
    CHECK_INT(count, 5);
    CHECK_SPAN(pairs[0].name, "a");
    CHECK_SPAN(pairs[0].value, "1");
    CHECK_SPAN(pairs[1].value, "x y");
    CHECK_SPAN(pairs[2].name, "c");
    CHECK_SPAN(pairs[2].value, "");
    CHECK_SPAN(pairs[3].name, "");
    CHECK_SPAN(pairs[3].value, "v");
    CHECK_SPAN(pairs[4].value, "&==z");
    finish();
}

TEST(too_many_pairs_are_refused)
{
    struct url_pair *pairs;
    unsigned         count;

    begin();
    CHECK_INT(url_parse_query(&arena, STR("a&b&c"), 3, &pairs, &count), 0);
    CHECK_INT(url_parse_query(&arena, STR("a&b&c&d"), 3, &pairs, &count), ERR_TOO_LARGE);
    CHECK_INT(url_parse_query(&arena, STR("&&&&&a"), 1, &pairs, &count), 0);
    CHECK_INT(url_parse_query(&arena, STR(""), 0, &pairs, &count), 0);
    CHECK_INT(count, 0);
    finish();
}

int main(void)
{
    return check_run();
}
