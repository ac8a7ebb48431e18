#include "base/symbols.h"

#include <string.h>

#include "support/check.h"

__attribute__((noinline)) static int only_in_this_file(int n)
{
    return n * 7 + (int)strlen("x");
}

TEST(a_static_function_has_its_name_and_file)
{
    struct symbols *symbols = symbols_open();
    struct symbol   found;
    uintptr_t       low = 0, high = 0;

    CHECK_INT(only_in_this_file(1), 8);
    symbols_find(symbols, (uintptr_t)only_in_this_file + 1, &found);
    CHECK_STR(found.name, "only_in_this_file");
    CHECK_STR(found.file, "symbols_test.c");
    CHECK(found.named);
    CHECK(symbols_range(symbols, "only_in_this_file", &low, &high));
    CHECK(low == (uintptr_t)only_in_this_file && high > low);
    CHECK(!symbols_range(symbols, "no_such_function", &low, &high));
    symbols_close(symbols);
}

TEST(an_address_of_nothing_has_no_name)
{
    struct symbols *symbols = symbols_open();
    struct symbol   found;
    int             on_the_stack;

    symbols_find(symbols, 0, &found);
    CHECK_STR(found.name, "?");
    CHECK_STR(found.file, "");
    symbols_find(symbols, (uintptr_t)&on_the_stack, &found);
    CHECK_STR(found.name, "?");
    CHECK(!found.named);
    symbols_close(symbols);
}

int main(void)
{
    return check_run();
}
