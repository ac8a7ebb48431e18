#include "data/pg_stmts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    COST_UNKNOWN_US = 1000,
    COST_WEIGHT     = 8, /* the last one counts an eighth */
    COST_MAX_US     = 60 * 1000 * 1000,
};

void pg_stmts_init(struct pg_stmts *stmts, struct pg_costs *costs)
{
    *stmts = (struct pg_stmts){ .costs = costs };
    map_init(&stmts->by_sql);
    list_init(&stmts->recent);
}

static void free_stmt(struct pg_stmt *stmt)
{
    list_remove(&stmt->link);
    free(stmt->sql);
    free(stmt->types);
    free(stmt);
}

/* Nothing is in flight any more. */
void pg_stmts_fini(struct pg_stmts *stmts)
{
    list_each_safe(node, &stmts->recent) free_stmt(container_of(node, struct pg_stmt, link));
    map_fini(&stmts->by_sql);
}

static void make_room(struct pg_stmts *stmts, char out[PG_STMT_NAME_BYTES])
{
    if (stmts->by_sql.count < PG_STMTS_MAX)
        return;
    for (struct list *node = stmts->recent.prev; node != &stmts->recent; node = node->prev) {
        struct pg_stmt *stmt = container_of(node, struct pg_stmt, link);

        if (stmt->in_flight > 0 || !stmt->known)
            continue;
        snprintf(out, PG_STMT_NAME_BYTES, "%s", stmt->name);
        pg_stmts_forget(stmts, stmt);
        return;
    }
}

/* FNV-1a. */
static unsigned place_of(struct str sql)
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < sql.len; i++)
        hash = (hash ^ (unsigned char)sql.at[i]) * 16777619U;
    return hash % PG_COSTS;
}

unsigned pg_costs_of(const struct pg_costs *costs, struct str sql)
{
    return costs->us[place_of(sql)];
}

static struct pg_stmt *new_stmt(struct pg_stmts *stmts, struct str sql)
{
    struct pg_stmt *stmt = calloc(1, sizeof(*stmt));

    if (!stmt)
        return NULL;
    list_init(&stmt->link);
    stmt->sql     = malloc(sql.len + 1);
    stmt->cost_us = &stmts->costs->us[place_of(sql)];
    if (!stmt->sql) {
        free_stmt(stmt);
        return NULL;
    }
    if (sql.len > 0) /* an empty text may be at NULL */
        memcpy(stmt->sql, sql.at, sql.len);
    stmt->sql[sql.len] = '\0';
    stmt->sql_len      = sql.len;
    snprintf(stmt->name, sizeof(stmt->name), "s%" PRIu64, ++stmts->last_id);
    if (!map_put(&stmts->by_sql, str_make(stmt->sql, sql.len), stmt, NULL)) {
        free_stmt(stmt);
        return NULL;
    }
    stmt->known = true;
    return stmt;
}

struct pg_stmt *pg_stmts_use(struct pg_stmts *stmts, struct str sql, char out[PG_STMT_NAME_BYTES])
{
    struct pg_stmt *stmt = map_get(&stmts->by_sql, sql);

    out[0] = '\0';
    if (!stmt) {
        make_room(stmts, out);
        stmt = new_stmt(stmts, sql);
    }
    if (!stmt)
        return NULL;
    list_remove(&stmt->link);
    list_prepend(&stmts->recent, &stmt->link);
    stmt->in_flight++;
    return stmt;
}

void pg_stmts_release(struct pg_stmts *stmts, struct pg_stmt *stmt)
{
    if (--stmt->in_flight == 0 && !stmt->known)
        free_stmt(stmt);
}

void pg_stmts_forget(struct pg_stmts *stmts, struct pg_stmt *stmt)
{
    if (!stmt->known)
        return;
    map_remove(&stmts->by_sql, str_make(stmt->sql, stmt->sql_len));
    stmt->known = false;
    if (stmt->in_flight == 0)
        free_stmt(stmt);
}

unsigned pg_stmt_cost_us(const struct pg_stmt *stmt)
{
    return *stmt->cost_us ? *stmt->cost_us : COST_UNKNOWN_US;
}

void pg_stmt_took(struct pg_stmt *stmt, uint64_t us)
{
    uint64_t bound  = us < 1 ? 1 : us < COST_MAX_US ? us : COST_MAX_US;
    uint64_t before = *stmt->cost_us ? *stmt->cost_us : bound;

    *stmt->cost_us =
        (unsigned)((before * (COST_WEIGHT - 1) + bound + COST_WEIGHT / 2) / COST_WEIGHT);
}
