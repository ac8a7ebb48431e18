#include "http/form.h"

#include "base/arena.h"
#include "base/err.h"
#include "support/check.h"

static struct arena_pool pool;
static struct arena      arena;
static struct url_pair  *fields;
static unsigned          count;

static int parse(struct str body, enum form_charset charset, unsigned fields_max)
{
    arena_reset(&arena);
    arena.pool = &pool;
    return form_parse(&arena, body, charset, fields_max, &fields, &count);
}

TEST(fields_are_decoded)
{
    CHECK_INT(parse(STR("a=1&b=x+y%26&a=2&c"), FORM_UTF8, 10), 0);
    CHECK_INT(count, 4);
    CHECK(str_is(fields[1].value, STR("x y&")));
    CHECK(str_is(fields[2].name, STR("a")));
    CHECK(str_is(fields[3].value, STR("")));
    CHECK_INT(parse(STR(""), FORM_UTF8, 10), 0);
    CHECK_INT(count, 0);
}

TEST(broken_escapes_are_invalid)
{
    CHECK_INT(parse(STR("a=%4"), FORM_UTF8, 10), ERR_INVALID);
    CHECK_INT(parse(STR("%zz=1"), FORM_UTF8, 10), ERR_INVALID);
}

TEST(text_must_be_of_its_charset)
{
    CHECK_INT(parse(STR("a=%E2%82%AC%F0%9F%98%80"), FORM_UTF8, 10), 0);
    CHECK_INT(parse(STR("a=%E9"), FORM_UTF8, 10), ERR_INVALID);
    CHECK_INT(parse(STR("a=%C0%AF"), FORM_UTF8, 10), ERR_INVALID);
    CHECK_INT(parse(STR("a=%ED%A0%80"), FORM_UTF8, 10), ERR_INVALID);
    CHECK_INT(parse(STR("a=%F4%90%80%80"), FORM_UTF8, 10), ERR_INVALID);
    CHECK_INT(parse(STR("a=%E2%82"), FORM_UTF8, 10), ERR_INVALID);
}

TEST(latin1_becomes_utf8)
{
    CHECK_INT(parse(STR("caf%E9=\xfc"), FORM_LATIN1, 10), 0);
    CHECK(str_is(fields[0].name, STR("caf\xc3\xa9")));
    CHECK(str_is(fields[0].value, STR("\xc3\xbc")));
}

TEST(too_many_fields_are_refused)
{
    CHECK_INT(parse(STR("a=1&b=2&c=3"), FORM_UTF8, 2), ERR_TOO_LARGE);
}

int main(void)
{
    int status;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    status = check_run();
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return status;
}
