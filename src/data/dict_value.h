/* data/dict_value.h - what a shared dictionary keeps under a key. */
#ifndef DATA_DICT_VALUE_H
#define DATA_DICT_VALUE_H

#include <stdbool.h>

#include "base/str.h"

struct dict_value {
    bool       is_number; /* so that dict_incr() can add to it */
    double     number;
    struct str bytes; /* else: bytes that only the caller understands */
};

static inline bool dict_value_is(const struct dict_value *a, const struct dict_value *b)
{
    if (a->is_number || b->is_number)
        return a->is_number && b->is_number && a->number == b->number;
    return str_is(a->bytes, b->bytes);
}

#endif
