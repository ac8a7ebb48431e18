#include "data/pg_stmts.h"

#include <stdio.h>

#include "support/check.h"

static struct pg_costs costs;

static struct pg_stmt *use(struct pg_stmts *stmts, unsigned number, char gone[PG_STMT_NAME_BYTES])
{
    char sql[32];

    snprintf(sql, sizeof(sql), "select %u", number);
    return pg_stmts_use(stmts, str_of(sql), gone);
}

TEST(a_text_is_one_statement)
{
    struct pg_stmts stmts;
    char            gone[PG_STMT_NAME_BYTES];
    struct pg_stmt *first, *again;

    pg_stmts_init(&stmts, &costs);
    first = use(&stmts, 1, gone);
    again = use(&stmts, 1, gone);
    CHECK(first == again);
    CHECK_INT(first->in_flight, 2);
    CHECK(use(&stmts, 2, gone) != first);
    pg_stmts_fini(&stmts);
}

TEST(the_one_used_longest_ago_makes_room)
{
    struct pg_stmts stmts;
    char            gone[PG_STMT_NAME_BYTES], oldest[PG_STMT_NAME_BYTES];

    pg_stmts_init(&stmts, &costs);
    for (unsigned i = 0; i < PG_STMTS_MAX; i++) {
        struct pg_stmt *stmt = use(&stmts, i, gone);

        CHECK_STR(gone, "");
        if (i == 1)
            snprintf(oldest, sizeof(oldest), "%s", stmt->name);
        if (i > 0)
            pg_stmts_release(&stmts, stmt); /* the first one is still on its way */
    }
    use(&stmts, PG_STMTS_MAX, gone);
    CHECK_STR(gone, oldest);
    CHECK_INT(stmts.by_sql.count, PG_STMTS_MAX);
    pg_stmts_fini(&stmts);
}

TEST(what_is_forgotten_goes_with_its_last_use)
{
    struct pg_stmts stmts;
    char            gone[PG_STMT_NAME_BYTES];
    struct pg_stmt *old;

    pg_stmts_init(&stmts, &costs);
    old = use(&stmts, 1, gone);
    pg_stmts_forget(&stmts, old);
    CHECK(use(&stmts, 1, gone) != old);
    pg_stmts_release(&stmts, old);
    pg_stmts_fini(&stmts);
}

TEST(what_it_costs_is_learned)
{
    struct pg_stmts stmts;
    char            gone[PG_STMT_NAME_BYTES];
    struct pg_stmt *stmt;

    pg_stmts_init(&stmts, &costs);
    stmt = use(&stmts, 1, gone);
    pg_stmt_took(stmt, 10000);
    CHECK_INT(pg_stmt_cost_us(stmt), 10000);
    pg_stmts_forget(&stmts, stmt);
    CHECK_INT(pg_stmt_cost_us(use(&stmts, 1, gone)), 10000); /* by its text */
    for (int i = 0; i < 100; i++)
        pg_stmt_took(stmt, 50);
    CHECK(pg_stmt_cost_us(stmt) >= 50 && pg_stmt_cost_us(stmt) < 60);
    pg_stmts_release(&stmts, stmt);
    pg_stmts_fini(&stmts);
}

int main(void)
{
    return check_run();
}
