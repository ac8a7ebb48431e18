#include "data/pg_fault.h"

#include "support/check.h"

TEST(states_of_the_server_have_the_codes_of_the_api)
{
    static const char *const PAIRS[][2] = {
        { "23505", "unique" },      { "23503", "foreign_key" }, { "23514", "check" },
        { "23502", "not_null" },    { "40001", "conflict" },    { "40P01", "conflict" },
        { "55P03", "conflict" },    { "57014", "timeout" },     { "57P01", "unavailable" },
        { "57P03", "unavailable" }, { "08006", "unavailable" }, { "08P01", "sql" },
        { "53300", "unavailable" }, { "42601", "sql" },         { "22P02", "sql" },
        { "25P02", "sql" },         { "XX000", "sql" },
    };

    for (size_t i = 0; i < sizeof(PAIRS) / sizeof(PAIRS[0]); i++)
        CHECK_STR(pg_fault_code(PAIRS[i][0]), PAIRS[i][1]);
}

int main(void)
{
    return check_run();
}
