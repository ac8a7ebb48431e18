/* data/pg_stmts.h - the prepared statements of one connection, found by their text.
 *
 * Bounded: the one that was used longest ago makes room. They die with the connection, so another
 * one prepares them anew. */
#ifndef DATA_PG_STMTS_H
#define DATA_PG_STMTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

enum { PG_STMTS_MAX = 256, PG_STMT_NAME_BYTES = 24, PG_COSTS = 512 };

/* What statements take the server, about, by a hash of their text: for all connections of a pool, so that
 * a new one knows. Those that share a place are mixed up, which does no harm. */
struct pg_costs {
    unsigned us[PG_COSTS]; /* 0: not known */
};

unsigned pg_costs_of(const struct pg_costs *costs, struct str sql);

struct pg_stmt {
    struct list link; /* the one used last first */
    char       *sql;  /* owned */
    size_t      sql_len;
    char        name[PG_STMT_NAME_BYTES];
    bool        prepared;  /* was sent */
    bool        described; /* `types` are known */
    bool        known;     /* in the map */
    unsigned   *types;     /* of its parameters; owned */
    unsigned    type_count;
    unsigned    in_flight; /* uses that are not over: it cannot go before */
    unsigned   *cost_us;   /* in the pool's costs */
};

struct pg_stmts {
    struct map       by_sql;
    struct list      recent;
    uint64_t         last_id;
    struct pg_costs *costs; /* borrowed */
};

void pg_stmts_init(struct pg_stmts *stmts, struct pg_costs *costs);
void pg_stmts_fini(struct pg_stmts *stmts);

/* The statement of this text, new or known, with one use more; NULL: no memory. OUT gets the name
 * of one that made room and is to be deallocated, or "". */
struct pg_stmt *pg_stmts_use(struct pg_stmts *stmts, struct str sql, char out[PG_STMT_NAME_BYTES]);
/* That use is over. */
void pg_stmts_release(struct pg_stmts *stmts, struct pg_stmt *stmt);
/* It does not exist on the server: the next use makes another. */
void pg_stmts_forget(struct pg_stmts *stmts, struct pg_stmt *stmt);
/* What it takes the server, about; and what it took this time. */
unsigned pg_stmt_cost_us(const struct pg_stmt *stmt);
void     pg_stmt_took(struct pg_stmt *stmt, uint64_t us);

#endif
