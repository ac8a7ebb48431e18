#include "data/pg_types.h"

#include <math.h>

#include "support/check.h"

static struct buf scratch;

static struct value decode(enum pg_kind kind, const char *text)
{
    struct value value;

    if (!scratch.bytes_max)
        buf_init(&scratch, 1000);
    pg_decode(&value, kind, str_of(text), &scratch);
    return value;
}

#define CHECK_TEXT(value, want) CHECK_MEM((value).bytes.at, (value).bytes.len, (want), strlen(want))

TEST(integers_that_a_double_would_round_stay_texts)
{
    struct value huge = decode(PG_KIND_INTEGER, "9007199254740993");

    CHECK_INT(decode(PG_KIND_INTEGER, "9007199254740992").integer, 9007199254740992);
    CHECK_INT(decode(PG_KIND_INTEGER, "-9007199254740992").integer, -9007199254740992);
    CHECK_INT(huge.kind, VALUE_TEXT);
    CHECK_TEXT(huge, "9007199254740993");
    CHECK_INT(decode(PG_KIND_INTEGER, "-9223372036854775808").kind, VALUE_TEXT);
}

TEST(reals_are_read_as_they_were_written)
{
    CHECK(decode(PG_KIND_REAL, "0.1").real == 0.1);
    CHECK(decode(PG_KIND_REAL, "1e+300").real == 1e300);
    CHECK(decode(PG_KIND_REAL, "-Infinity").real == -INFINITY);
    CHECK(isnan(decode(PG_KIND_REAL, "NaN").real));
}

TEST(timestamps_are_iso_in_utc)
{
    CHECK_TEXT(decode(PG_KIND_TIMESTAMP, "2021-06-22 19:54:00"), "2021-06-22T19:54:00Z");
    CHECK_TEXT(decode(PG_KIND_TIMESTAMP, "2021-06-22 19:54:00.5+00"), "2021-06-22T19:54:00.5Z");
    CHECK_TEXT(decode(PG_KIND_TIMESTAMP, "infinity"), "infinity");
    CHECK_TEXT(decode(PG_KIND_TIMESTAMP, "0044-03-15 00:00:00 BC"), "0044-03-15 00:00:00 BC");
    CHECK_TEXT(decode(PG_KIND_TIMESTAMP, "2021-06-22 19:54:00+02"), "2021-06-22 19:54:00+02");
}

TEST(bytes_are_read_from_hex)
{
    struct value bytes = decode(PG_KIND_BYTES, "\\x00ff");

    CHECK_INT(bytes.kind, VALUE_BLOB);
    CHECK_MEM(bytes.bytes.at, bytes.bytes.len, "\0\xff", 2);
    CHECK_INT(decode(PG_KIND_BYTES, "\\x").bytes.len, 0);
}

TEST(types_go_by_their_oid_and_own_ones_by_what_the_server_said)
{
    struct pg_own_types own = { .count = 0 };
    struct pg_type      type;

    CHECK_INT(pg_type_of(20).kind, PG_KIND_INTEGER);
    CHECK(pg_type_of(1016).is_array && pg_type_of(1016).kind == PG_KIND_INTEGER);
    CHECK_INT(pg_type_of(1700).kind, PG_KIND_TEXT);
    CHECK(pg_own_types_find(&own, 25, &type));
    CHECK(!pg_own_types_find(&own, 16400, &type));
    pg_own_types_add(&own, 16400, true, ';');
    CHECK(pg_own_types_find(&own, 16400, &type) && type.is_array && type.separator == ';');
    pg_own_types_fini(&own);
}

int main(void)
{
    int status = check_run();

    buf_fini(&scratch);
    return status;
}
