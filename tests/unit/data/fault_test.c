#include "data/fault.h"

#include <string.h>

#include "support/check.h"

static struct fault fault;

static const char *excerpt(const char *sql, size_t at)
{
    fault_set_in(&fault, "sql", "wrong", str_of(sql), at);
    return fault.text;
}

TEST(a_short_statement_is_told_whole)
{
    CHECK_STR(excerpt("  select\n 1 ", 9), "wrong, in: select  1");
    CHECK_STR(excerpt("", 0), "wrong, in: ");
    CHECK_STR(excerpt("select 1", 5000), "wrong, in: select 1");
}

TEST(of_a_long_statement_the_part_around_the_place_is_told)
{
    char sql[1001];

    memset(sql, 'x', 1000);
    sql[1000] = '\0';
    memcpy(sql + 600, "HERE", 4);
    CHECK(strstr(excerpt(sql, 600), "in: ...xxx"));
    CHECK(strstr(fault.text, "HERE"));
    CHECK(strstr(fault.text, "xxx..."));
    CHECK(strlen(fault.text) < 230);
    CHECK(strstr(excerpt(sql, 0), "in: xxx"));
    CHECK(!strstr(fault.text, "HERE"));
    CHECK(strstr(excerpt(sql, 1000), "...xxx"));
    CHECK(strlen(fault.text) < 130);
}

TEST(no_character_is_cut)
{
    char sql[602] = "";

    for (int i = 0; i < 300; i++)
        strcat(sql, "\xc3\xa4");
    for (size_t at = 0; at <= 600; at++) {
        const char *from = strstr(excerpt(sql, at), "in: ") + strlen("in: ");

        from += strspn(from, ".");
        CHECK((unsigned char)from[0] == 0xc3);
        CHECK(strcspn(from, ".") % 2 == 0);
    }
}

TEST(what_clients_read_is_a_sentence_for_each_code)
{
    CHECK_STR(fault_told("unique"), "this exists already");
    CHECK(fault_told("conflict"));
    CHECK(!fault_told("sql"));
    CHECK(!fault_told("not_null"));
}

int main(void)
{
    return check_run();
}
