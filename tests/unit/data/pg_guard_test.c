#include "data/pg_guard.h"

#include "support/check.h"

static bool shared(const char *sql)
{
    return pg_guard(str_of(sql), false) == NULL;
}

static bool leased(const char *sql)
{
    return pg_guard(str_of(sql), true) == NULL;
}

TEST(what_would_change_the_connection_for_others_is_refused)
{
    CHECK(!shared("begin") && !shared("BEGIN") && !shared(" \n\tCommit"));
    CHECK(!shared("set timezone = 'CET'") && !shared("set local x = 1") && !shared("lock t"));
    CHECK(!shared("-- a comment\nlisten x") && !shared("/* a /* b */ c */ copy t from stdin"));
    CHECK(!shared("-- a comment\rbegin"));
    CHECK(!shared(";; abort") && !shared("end"));
}

TEST(all_else_is_fine)
{
    CHECK(shared("select 1") && shared("with begin as (select 1) select * from begin"));
    CHECK(shared("insert into t values (1)") && shared("endless()") && shared("settle"));
    CHECK(shared("") && shared("/*") && shared("--"));
}

TEST(a_transaction_may_set_what_ends_with_it)
{
    CHECK(leased("set local work_mem = '1MB'") && leased("SET CONSTRAINTS all deferred"));
    CHECK(leased("lock t") && leased("declare c cursor for select 1"));
    CHECK(!leased("set work_mem = '1MB'") && !leased("rollback") && !leased("savepoint a"));
}

TEST(queries_are_known_by_their_first_word)
{
    CHECK(pg_guard_reads(STR("select 1")) && pg_guard_reads(STR("(select 1)")));
    CHECK(pg_guard_reads(STR("values (1)")) && pg_guard_reads(STR("with a as (select 1) table a")));
    CHECK(!pg_guard_reads(STR("insert into t values (1) returning *")));
}

int main(void)
{
    return check_run();
}
