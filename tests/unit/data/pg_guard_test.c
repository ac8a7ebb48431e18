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

TEST(what_outlasts_its_transaction_is_known_by_its_words)
{
    CHECK(!shared("select set_config('search_path', 'a', false)") &&
          !shared("select set_config('a', $1, $2)"));
    CHECK(!shared("select pg_catalog.SET_CONFIG ('a', f(')', 1), false)"));
    CHECK(shared("select set_config('a', 'x)', true)") &&
          shared("select my_set_config('a', 'b', 'c')"));
    CHECK(!shared("select pg_advisory_lock(1)") &&
          !shared("select 1 where pg_try_advisory_lock (1)"));
    CHECK(shared("select pg_advisory_xact_lock(1)") && shared("select f(pg_advisory_lock"));
    CHECK(!shared("create temp table t (n int)") && !shared("CREATE LOCAL TEMPORARY TABLE t ()"));
    CHECK(shared("create temp table t (n int) on commit drop") &&
          shared("create table temp (n int)"));
    CHECK(leased("select pg_advisory_lock(1)") &&
          pg_guard_outlasts(STR("select pg_advisory_lock(1)")));
    CHECK(!pg_guard_outlasts(STR("select count(*) from t where f(n)")) &&
          !pg_guard_outlasts(STR("(")));
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
