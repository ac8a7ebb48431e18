#include "data/pg_stmts.h"

#include <stdio.h>

#include "support/check.h"

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

    pg_stmts_init(&stmts);
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

    pg_stmts_init(&stmts);
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

    pg_stmts_init(&stmts);
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

    pg_stmts_init(&stmts);
    stmt = use(&stmts, 1, gone);
    for (int i = 0; i < 50; i++)
        pg_stmt_took(stmt, 10000);
    CHECK(stmt->cost_us > 9000 && stmt->cost_us <= 10000);
    pg_stmts_fini(&stmts);
}

int main(void)
{
    return check_run();
}
