/* data/rows.h - the result of a statement: names of columns, then cells row by row.
 *
 * Cells are as the app is to see them (API, section 9): an integer is one that a double can hold,
 * larger ones and numerics are texts of digits; booleans and JSON go by the declared type. */
#ifndef DATA_ROWS_H
#define DATA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/values.h"

/* Integers beyond it lose digits in a double: they are kept as text. */
#define ROWS_INTEGER_MAX ((int64_t)1 << 53)

enum {
    ROWS_BATCH     = 100,    /* rows that a cursor reads ahead */
    ROWS_MAX       = 100000, /* rows of a result that is read whole */
    ROWS_BYTES_MAX = 64 * 1024 * 1024,
};

/* How many rows the caller wants. */
enum rows_keep {
    ROWS_NONE,  /* the statement runs to its end */
    ROWS_FIRST, /* one that only reads stops there */
    ROWS_ALL,   /* more than ROWS_MAX are a fault */
    ROWS_SOME,  /* ROWS_BATCH for now */
};

struct rows {
    struct values names; /* TEXT, one for each column; empty as long as there is no row */
    struct values cells;
    unsigned      row_count;
    int64_t       changed; /* rows inserted, updated, deleted */
    bool          done;    /* the statement has no more */
};

void rows_init(struct rows *rows);
void rows_fini(struct rows *rows);

/* An integer of a result: itself, or its digits where a double could not hold it. */
void rows_add_integer(struct rows *rows, int64_t integer);

#endif
