/* data/values.h - typed values, packed one behind the other: the parameters of a statement and the
 * cells of its result. They cross threads as plain memory, and no VM is touched for it. */
#ifndef DATA_VALUES_H
#define DATA_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_BLOB,
    VALUE_JSON, /* a document's text */
};

struct value {
    enum value_kind kind;
    union {
        int64_t    integer; /* BOOL too: 0 or 1 */
        double     real;
        struct str bytes; /* TEXT, BLOB, JSON; borrowed */
    };
};

static inline struct value value_null(void)
{
    return (struct value){ .kind = VALUE_NULL };
}

static inline struct value value_bool(bool truth)
{
    return (struct value){ .kind = VALUE_BOOL, .integer = truth };
}

static inline struct value value_int(int64_t integer)
{
    return (struct value){ .kind = VALUE_INT, .integer = integer };
}

static inline struct value value_real(double real)
{
    return (struct value){ .kind = VALUE_REAL, .real = real };
}

/* KIND: TEXT, BLOB or JSON. */
static inline struct value value_bytes(enum value_kind kind, struct str bytes)
{
    return (struct value){ .kind = kind, .bytes = bytes };
}

struct values {
    struct buf packed; /* packed.failed: one did not fit, and is not there */
    unsigned   count;
};

/* Allocates nothing yet. */
void values_init(struct values *values, size_t bytes_max);
void values_fini(struct values *values);

/* Copies the bytes. */
void values_add(struct values *values, struct value value);

/* Reads the next one off *REST, which begins as values_all(). False at the end. Texts point into
 * the packed memory. */
bool values_next(struct str *rest, struct value *value);

static inline struct str values_all(const struct values *values)
{
    return buf_str(&values->packed);
}

#endif
