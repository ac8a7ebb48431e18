#include "data/pg_rows.h"

#include <string.h>

#include "data/pg_lib.h"

void pg_rows_set(struct pg_rows *rows, const struct pg_lib *lib, const struct pg_own_types *own,
                 PGresult *result)
{
    pg_rows_clear(rows);
    rows->lib    = lib;
    rows->own    = own;
    rows->result = result;
}

void pg_rows_clear(struct pg_rows *rows)
{
    if (rows->result)
        rows->lib->clear(rows->result);
    rows->result = NULL;
}

unsigned pg_rows_count(const struct pg_rows *rows)
{
    return rows->result ? (unsigned)rows->lib->ntuples(rows->result) : 0;
}

unsigned pg_rows_columns(const struct pg_rows *rows)
{
    return rows->result ? (unsigned)rows->lib->nfields(rows->result) : 0;
}

/* PQcmdTuples() counts the rows of a SELECT too. */
int64_t pg_rows_changed(const struct pg_rows *rows)
{
    const char *command = pg_rows_command(rows);
    uint64_t    count;

    if (strncmp(command, "SELECT", 6) == 0 || strncmp(command, "FETCH", 5) == 0)
        return 0;
    if (!rows->result || !str_to_u64(str_of(rows->lib->cmdTuples(rows->result)), INT64_MAX, &count))
        return 0;
    return (int64_t)count;
}

const char *pg_rows_command(const struct pg_rows *rows)
{
    return rows->result ? rows->lib->cmdStatus(rows->result) : "";
}

const char *pg_rows_name(const struct pg_rows *rows, unsigned column)
{
    return rows->lib->fname(rows->result, (int)column);
}

struct pg_type pg_rows_type(const struct pg_rows *rows, unsigned column)
{
    struct pg_type type;

    pg_own_types_find(rows->own, rows->lib->ftype(rows->result, (int)column), &type);
    return type;
}

bool pg_rows_cell(const struct pg_rows *rows, unsigned row, unsigned column, struct str *text)
{
    const struct pg_lib *lib = rows->lib;

    if (lib->getisnull(rows->result, (int)row, (int)column))
        return false;
    *text = str_make(lib->getvalue(rows->result, (int)row, (int)column),
                     (size_t)lib->getlength(rows->result, (int)row, (int)column));
    return true;
}
