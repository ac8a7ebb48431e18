/* data/pg_rows.h - the result of a statement, as libpq keeps it: cells are read where they lie. */
#ifndef DATA_PG_ROWS_H
#define DATA_PG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "data/pg_types.h"

struct pg_lib;
struct pg_result;

struct pg_rows {
    const struct pg_lib       *lib;
    const struct pg_own_types *own;    /* borrowed from the pool */
    struct pg_result          *result; /* owned; NULL: none */
};

/* Takes RESULT, in the place of what was there. */
void pg_rows_set(struct pg_rows *rows, const struct pg_lib *lib, const struct pg_own_types *own,
                 struct pg_result *result);
void pg_rows_clear(struct pg_rows *rows); /* idempotent */

/* All are 0 of no result. */
unsigned pg_rows_count(const struct pg_rows *rows);
unsigned pg_rows_columns(const struct pg_rows *rows); /* at most 1,664 */
/* Rows inserted, updated, deleted; 0 for what only reads. */
int64_t pg_rows_changed(const struct pg_rows *rows);
/* The command as the server calls it: "INSERT 0 1", "ROLLBACK". */
const char *pg_rows_command(const struct pg_rows *rows);

const char    *pg_rows_name(const struct pg_rows *rows, unsigned column);
struct pg_type pg_rows_type(const struct pg_rows *rows, unsigned column);
/* False: NULL. The text lives as long as the result. */
bool pg_rows_cell(const struct pg_rows *rows, unsigned row, unsigned column, struct str *text);

#endif
