#include "data/rows.h"

#include <inttypes.h>
#include <stdio.h>

void rows_init(struct rows *rows)
{
    values_init(&rows->names, ROWS_BYTES_MAX);
    values_init(&rows->cells, ROWS_BYTES_MAX);
    rows->row_count = 0;
    rows->changed   = 0;
    rows->done      = false;
}

void rows_fini(struct rows *rows)
{
    values_fini(&rows->names);
    values_fini(&rows->cells);
}

void rows_add_integer(struct rows *rows, int64_t integer)
{
    char digits[24];
    int  len;

    if (integer >= -ROWS_INTEGER_MAX && integer <= ROWS_INTEGER_MAX) {
        values_add(&rows->cells, value_int(integer));
        return;
    }
    len = snprintf(digits, sizeof(digits), "%" PRId64, integer);
    values_add(&rows->cells, value_bytes(VALUE_TEXT, str_make(digits, (size_t)len)));
}
