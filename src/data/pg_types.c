#include "data/pg_types.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/compiler.h"
#include "base/number.h"
#include "data/rows.h"

struct entry {
    unsigned     oid, array_oid;
    enum pg_kind kind;
};

/* pg_type.dat: these never change. Those that come most often first. */
static const struct entry TYPES[] = {
    { 23, 1007, PG_KIND_INTEGER },     /* int4 */
    { 25, 1009, PG_KIND_TEXT },        /* text */
    { 20, 1016, PG_KIND_INTEGER },     /* int8 */
    { 1043, 1015, PG_KIND_TEXT },      /* varchar */
    { 1184, 1185, PG_KIND_TIMESTAMP }, /* timestamptz */
    { 1114, 1115, PG_KIND_TIMESTAMP }, /* timestamp */
    { 16, 1000, PG_KIND_BOOL },        /* bool */
    { 3802, 3807, PG_KIND_JSON },      /* jsonb */
    { 114, 199, PG_KIND_JSON },        /* json */
    { 701, 1022, PG_KIND_REAL },       /* float8 */
    { 700, 1021, PG_KIND_REAL },       /* float4 */
    { 21, 1005, PG_KIND_INTEGER },     /* int2 */
    { 17, 1001, PG_KIND_BYTES },       /* bytea */
    { 26, 1028, PG_KIND_INTEGER },     /* oid */
    { 1700, 1231, PG_KIND_TEXT },      /* numeric */
    { 2950, 2951, PG_KIND_TEXT },      /* uuid */
    { 1082, 1182, PG_KIND_TEXT },      /* date */
    { 1083, 1183, PG_KIND_TEXT },      /* time */
    { 1266, 1270, PG_KIND_TEXT },      /* timetz */
    { 1186, 1187, PG_KIND_TEXT },      /* interval */
    { 1042, 1014, PG_KIND_TEXT },      /* bpchar */
    { 18, 1002, PG_KIND_TEXT },        /* "char" */
    { 19, 1003, PG_KIND_TEXT },        /* name */
    { 869, 1041, PG_KIND_TEXT },       /* inet */
    { 650, 651, PG_KIND_TEXT },        /* cidr */
    { 829, 1040, PG_KIND_TEXT },       /* macaddr */
    { 774, 775, PG_KIND_TEXT },        /* macaddr8 */
    { 790, 791, PG_KIND_TEXT },        /* money */
    { 1560, 1561, PG_KIND_TEXT },      /* bit */
    { 1562, 1563, PG_KIND_TEXT },      /* varbit */
    { 2249, 2287, PG_KIND_TEXT },      /* record */
    { 2205, 2210, PG_KIND_TEXT },      /* regclass */
    { 142, 143, PG_KIND_TEXT },        /* xml */
    { 3614, 3643, PG_KIND_TEXT },      /* tsvector */
    { 3904, 3905, PG_KIND_TEXT },      /* int4range */
    { 3926, 3927, PG_KIND_TEXT },      /* int8range */
    { 3906, 3907, PG_KIND_TEXT },      /* numrange */
    { 3908, 3909, PG_KIND_TEXT },      /* tsrange */
    { 3910, 3911, PG_KIND_TEXT },      /* tstzrange */
    { 3912, 3913, PG_KIND_TEXT },      /* daterange */
    { 600, 1017, PG_KIND_TEXT },       /* point */
};

struct pg_type pg_type_of(unsigned oid)
{
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
        if (TYPES[i].oid == oid || TYPES[i].array_oid == oid)
            return (struct pg_type){ TYPES[i].kind, TYPES[i].array_oid == oid, ',' };
    return (struct pg_type){ PG_KIND_TEXT, false, ',' };
}

struct pg_own_type {
    unsigned       oid;
    struct pg_type type;
};

void pg_own_types_fini(struct pg_own_types *own)
{
    free(own->list);
    *own = (struct pg_own_types){ .count = 0 };
}

bool pg_own_types_find(const struct pg_own_types *own, unsigned oid, struct pg_type *out)
{
    *out = pg_type_of(oid);
    if (oid < PG_OWN_OIDS)
        return true;
    for (unsigned i = 0; i < own->count; i++) {
        if (own->list[i].oid != oid)
            continue;
        *out = own->list[i].type;
        return true;
    }
    return own->count == PG_OWN_TYPES_MAX;
}

/* Their elements are texts, as they themselves would be. */
void pg_own_types_add(struct pg_own_types *own, unsigned oid, bool is_array, char separator)
{
    struct pg_own_type *list;

    if (own->count == PG_OWN_TYPES_MAX)
        return;
    list = realloc(own->list, (own->count + 1) * sizeof(*list));
    if (!list)
        return;
    list[own->count++] = (struct pg_own_type){ oid, { PG_KIND_TEXT, is_array, separator } };
    own->list          = list;
}

/* --- values ---------------------------------------------------------------------------------- */

static void decode_integer(struct value *out, struct str text)
{
    bool     negative = text.len && text.at[0] == '-';
    uint64_t digits;

    if (str_to_u64(str_from(text, negative), (uint64_t)ROWS_INTEGER_MAX, &digits))
        *out = value_int(negative ? -(int64_t)digits : (int64_t)digits);
    else
        *out = value_bytes(VALUE_TEXT, text);
}

static void decode_real(struct value *out, struct str text)
{
    struct number number;

    number_read(text, &number);
    if (number.kind != NUMBER_NONE && number.len == text.len)
        *out = value_real(number.value);
    else if (str_is(text, STR("NaN")))
        *out = value_real(NAN);
    else
        *out = value_real(text.len && text.at[0] == '-' ? -INFINITY : INFINITY);
}

/* "\x0aff"; bytea_output is set to hex when a connection is made. */
static void decode_bytes(struct value *out, struct str text, struct buf *scratch)
{
    struct str digits = str_from(text, 2);
    char      *to     = text.len >= 2 ? buf_reserve(scratch, digits.len / 2 + 1) : NULL;

    *out = value_bytes(VALUE_BLOB, text);
    if (to && codec_hex_decode(digits, to))
        *out = value_bytes(VALUE_BLOB, str_make(to, digits.len / 2));
}

/* "2021-06-22 19:54:00.5+00". What has no such form (infinity, years before Christ) stays. */
static void decode_timestamp(struct value *out, struct str text, struct buf *scratch)
{
    size_t day = str_find(text, ' ');
    size_t len = text.len;

    *out = value_bytes(VALUE_TEXT, text);
    if (day == text.len || str_ends_with(text, STR(" BC")))
        return;
    if (str_ends_with(text, STR("+00")))
        len -= 3;
    else if (memchr(text.at + day, '+', len - day) || memchr(text.at + day, '-', len - day))
        return;
    buf_add(scratch, text.at, len);
    buf_add_byte(scratch, 'Z');
    if (scratch->failed)
        return;
    scratch->at[day] = 'T';
    *out             = value_bytes(VALUE_TEXT, buf_str(scratch));
}

void pg_decode(struct value *out, enum pg_kind kind, struct str text, struct buf *scratch)
{
    buf_clear(scratch);
    switch (kind) {
    case PG_KIND_TEXT: *out = value_bytes(VALUE_TEXT, text); break;
    case PG_KIND_BOOL: *out = value_bool(text.len && text.at[0] == 't'); break;
    case PG_KIND_INTEGER: decode_integer(out, text); break;
    case PG_KIND_REAL: decode_real(out, text); break;
    case PG_KIND_JSON: *out = value_bytes(VALUE_JSON, text); break;
    case PG_KIND_BYTES: decode_bytes(out, text, scratch); break;
    case PG_KIND_TIMESTAMP: decode_timestamp(out, text, scratch); break;
    }
}
