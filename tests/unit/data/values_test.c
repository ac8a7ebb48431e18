#include "data/values.h"

#include "data/rows.h"
#include "support/check.h"

TEST(what_is_added_is_read_back_in_order)
{
    struct values values;
    struct value  got;
    struct str    rest;

    values_init(&values, 1024);
    values_add(&values, value_null());
    values_add(&values, value_bool(true));
    values_add(&values, value_int(INT64_MIN));
    values_add(&values, value_real(0.1));
    values_add(&values, value_bytes(VALUE_TEXT, STR("a\0b")));
    values_add(&values, value_bytes(VALUE_BLOB, STR_NONE));
    CHECK_INT(values.count, 6);

    rest = values_all(&values);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_NULL);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_BOOL && got.integer == 1);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_INT && got.integer == INT64_MIN);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_REAL && got.real == 0.1);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_TEXT);
    CHECK_MEM(got.bytes.at, got.bytes.len, "a\0b", 3);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_BLOB && got.bytes.len == 0);
    CHECK(!values_next(&rest, &got));
    values_fini(&values);
}

TEST(a_value_beyond_the_bound_is_not_there_and_says_so)
{
    struct values values;
    struct value  got;
    struct str    rest;

    values_init(&values, 20);
    values_add(&values, value_int(1));
    values_add(&values, value_bytes(VALUE_TEXT, STR("much too long for it")));
    CHECK(values.packed.failed);
    CHECK_INT(values.count, 1);
    rest = values_all(&values);
    CHECK(values_next(&rest, &got) && !values_next(&rest, &got));
    values_fini(&values);
}

TEST(integers_that_a_double_would_round_are_digits)
{
    struct rows  rows;
    struct value got;
    struct str   rest;

    rows_init(&rows);
    rows_add_integer(&rows, ROWS_INTEGER_MAX);
    rows_add_integer(&rows, ROWS_INTEGER_MAX + 1);
    rows_add_integer(&rows, INT64_MIN);
    rest = values_all(&rows.cells);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_INT && got.integer == ROWS_INTEGER_MAX);
    CHECK(values_next(&rest, &got) && got.kind == VALUE_TEXT);
    CHECK_MEM(got.bytes.at, got.bytes.len, "9007199254740993", 16);
    CHECK(values_next(&rest, &got));
    CHECK_MEM(got.bytes.at, got.bytes.len, "-9223372036854775808", 20);
    rows_fini(&rows);
}

int main(void)
{
    return check_run();
}
