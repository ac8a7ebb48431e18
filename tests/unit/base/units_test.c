#include "base/units.h"

#include "base/compiler.h"

#include "support/check.h"

static uint64_t ms(const char *text)
{
    uint64_t value = 0;

    return units_duration_ms(str_of(text), &value) ? value : UINT64_MAX;
}

static uint64_t bytes(const char *text)
{
    uint64_t value = 0;

    return units_bytes(str_of(text), &value) ? value : UINT64_MAX;
}

TEST(a_duration_without_unit_counts_seconds)
{
    CHECK_INT(ms("30"), 30000);
    CHECK_INT(ms("0.25"), 250);
    CHECK_INT(ms("0"), 0);
}

TEST(each_unit_of_time_is_known)
{
    CHECK_INT(ms("250ms"), 250);
    CHECK_INT(ms("5s"), 5000);
    CHECK_INT(ms("1.5s"), 1500);
    CHECK_INT(ms("10m"), 600000);
    CHECK_INT(ms("2h"), 7200000);
    CHECK_INT(ms("7d"), 604800000);
}

TEST(each_unit_of_size_is_known)
{
    CHECK_INT(bytes("512"), 512);
    CHECK_INT(bytes("64KiB"), 65536);
    CHECK_INT(bytes("1MiB"), 1048576);
    CHECK_INT(bytes("2GiB"), 2147483648);
    CHECK_INT(bytes("1MB"), 1000000);
}

TEST(what_is_no_quantity_is_refused)
{
    const char *const bad[] = { "",
                                "s",
                                ".",
                                "-1s",
                                "1 s",
                                "0x10",
                                "inf",
                                "1e3",
                                "1.2.3s",
                                "5sec",
                                "99999999999999999999999" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(ms(bad[i]), -1);
        CHECK_INT(bytes(bad[i]), -1);
    }
}

TEST(sizes_come_by_name)
{
    struct str rest = STR("cache=64MiB, jobs = 1024"), name;
    uint64_t   bytes;

    CHECK(units_next_size(&rest, &name, &bytes));
    CHECK_MEM(name.at, name.len, "cache", 5);
    CHECK_INT(bytes, 64 << 20);
    CHECK(units_next_size(&rest, &name, &bytes));
    CHECK_MEM(name.at, name.len, "jobs", 4);
    CHECK_INT(bytes, 1024);
    CHECK(!units_next_size(&rest, &name, &bytes));
    rest = STR("=5");
    CHECK(!units_next_size(&rest, &name, &bytes));
    rest = STR("a=much");
    CHECK(!units_next_size(&rest, &name, &bytes));
    rest = STR("a");
    CHECK(!units_next_size(&rest, &name, &bytes));
}

int main(void)
{
    return check_run();
}
