#include "data/values.h"

#include <assert.h>

void values_init(struct values *values, size_t bytes_max)
{
    buf_init(&values->packed, bytes_max);
    values->count = 0;
}

void values_fini(struct values *values)
{
    buf_fini(&values->packed);
    values->count = 0;
}

/* Kind, then eight bytes, or a length of eight bytes and as many bytes: nothing is aligned. */
void values_add(struct values *values, struct value value)
{
    struct buf *to   = &values->packed;
    bool        runs = value.kind >= VALUE_TEXT;
    uint64_t    len  = runs ? value.bytes.len : 0;

    if (!buf_reserve(to, 1 + sizeof(uint64_t) + len))
        return;
    buf_add_byte(to, (char)value.kind);
    if (value.kind == VALUE_REAL)
        buf_add(to, &value.real, sizeof(value.real));
    else if (value.kind == VALUE_INT || value.kind == VALUE_BOOL)
        buf_add(to, &value.integer, sizeof(value.integer));
    else if (runs) {
        buf_add(to, &len, sizeof(len));
        buf_add_str(to, value.bytes);
    }
    values->count++;
}

static void take(struct str *rest, void *to, size_t bytes)
{
    assert(rest->len >= bytes);
    memcpy(to, rest->at, bytes);
    *rest = str_from(*rest, bytes);
}

bool values_next(struct str *rest, struct value *value)
{
    unsigned char kind;
    uint64_t      len;

    if (rest->len == 0)
        return false;
    take(rest, &kind, 1);
    value->kind = (enum value_kind)kind;
    switch (value->kind) {
    case VALUE_NULL: break;
    case VALUE_REAL: take(rest, &value->real, sizeof(value->real)); break;
    case VALUE_BOOL:
    case VALUE_INT: take(rest, &value->integer, sizeof(value->integer)); break;
    case VALUE_TEXT:
    case VALUE_BLOB:
    case VALUE_JSON:
        take(rest, &len, sizeof(len));
        assert(rest->len >= len);
        value->bytes = str_make(rest->at, len);
        *rest        = str_from(*rest, len);
        break;
    }
    return true;
}
