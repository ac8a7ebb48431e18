#include "base/buf.h"

#include "support/check.h"

TEST(nothing_is_allocated_before_the_first_byte)
{
    struct buf b;

    buf_init(&b, 100);
    CHECK(b.at == NULL);
    buf_add(&b, NULL, 0);
    CHECK(b.len == 0 && !b.failed);
    buf_fini(&b);
}

TEST(what_is_added_stands_in_order)
{
    struct buf b;

    buf_init(&b, 4096);
    buf_add_str(&b, STR("count="));
    buf_add_u64(&b, 0);
    buf_add_byte(&b, ' ');
    buf_add_u64(&b, UINT64_MAX);
    buf_printf(&b, " %s=%d", "x", -7);
    CHECK_MEM(b.at, b.len, "count=0 18446744073709551615 x=-7", 33);
    CHECK(!b.failed);
    buf_fini(&b);
}

TEST(a_buffer_grows_to_its_bound_and_not_beyond)
{
    struct buf b;

    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        buf_add_byte(&b, 'a');
    CHECK(b.len == 1000 && !b.failed && b.room <= 1000);
    buf_add_byte(&b, 'b');
    CHECK(b.failed);
    CHECK_INT(b.len, 1000);
    buf_clear(&b);
    CHECK(b.len == 0 && !b.failed && b.room == 1000);
    buf_fini(&b);
}

TEST(an_append_that_does_not_fit_leaves_what_was_there)
{
    struct buf b;

    buf_init(&b, 8);
    buf_add_str(&b, STR("12345"));
    buf_add_str(&b, STR("6789"));
    CHECK(b.failed);
    CHECK_MEM(b.at, b.len, "12345", 5);
    buf_add_str(&b, STR("678"));
    CHECK_MEM(b.at, b.len, "12345678", 8);
    buf_fini(&b);
}

TEST(consume_moves_the_rest_to_the_front)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add_str(&b, STR("headbody"));
    buf_consume(&b, 4);
    CHECK(str_is(buf_str(&b), STR("body")));
    buf_consume(&b, 4);
    CHECK_INT(b.len, 0);
    buf_fini(&b);
}

TEST(shrink_gives_back_large_memory_of_an_empty_buffer)
{
    struct buf b;

    buf_init(&b, 100000);
    CHECK(buf_reserve(&b, 50000) != NULL);
    b.len = 1;
    buf_shrink(&b, 4096);
    CHECK(b.room >= 50000);
    buf_clear(&b);
    buf_shrink(&b, 4096);
    CHECK(b.at == NULL && b.room == 0);
    buf_add_byte(&b, 'x'); /* and it is used again */
    buf_shrink(&b, 4096);
    CHECK_INT(b.len, 1);
    buf_fini(&b);
}

TEST(printf_respects_the_bound)
{
    struct buf b;

    buf_init(&b, 8);
    buf_printf(&b, "%s", "1234567");
    CHECK(!b.failed && b.len == 7);
    buf_clear(&b);
    buf_printf(&b, "%s", "123456789");
    CHECK(b.failed && b.len == 0);
    buf_fini(&b);
}

int main(void)
{
    return check_run();
}
