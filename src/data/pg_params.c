#include "data/pg_params.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "data/fault.h"
#include "data/pg_array.h"
#include "data/values.h"

enum {
    ROOM_KEPT = 64 * 1024, /* of text, between two statements */

    OID_TEXT        = 25,
    OID_JSON        = 114,
    OID_JSON_ARRAY  = 199,
    OID_UNKNOWN     = 705,
    OID_VARCHAR     = 1043,
    OID_JSONB       = 3802,
    OID_JSONB_ARRAY = 3807,
};

static const size_t NO_OFFSET = (size_t)-1;

void pg_params_init(struct pg_params *params)
{
    *params = (struct pg_params){ .room = 0 };
    buf_init(&params->text, PG_PARAMS_BYTES_MAX);
}

void pg_params_fini(struct pg_params *params)
{
    buf_fini(&params->text);
    free(params->values);
    free(params->offsets);
    free(params->lengths);
    free(params->formats);
    *params = (struct pg_params){ .room = 0 };
}

static bool is_json_array(const struct value *value)
{
    return value->kind == VALUE_JSON && value->bytes.len && value->bytes.at[0] == '[';
}

bool pg_params_need_types(const struct values *values)
{
    struct str   rest = values_all(values);
    struct value value;

    while (values_next(&rest, &value))
        if (is_json_array(&value))
            return true;
    return false;
}

static bool grow(void **array, unsigned count, size_t size)
{
    void *larger = realloc(*array, count * size);

    if (larger)
        *array = larger;
    return larger != NULL;
}

static bool make_room(struct pg_params *params, unsigned count)
{
    if (count <= params->room)
        return true;
    if (!grow((void **)&params->values, count, sizeof(*params->values)) ||
        !grow((void **)&params->offsets, count, sizeof(*params->offsets)) ||
        !grow((void **)&params->lengths, count, sizeof(*params->lengths)) ||
        !grow((void **)&params->formats, count, sizeof(*params->formats)))
        return false;
    params->room = count;
    return true;
}

static void add_real(struct buf *text, double real)
{
    char digits[NUMBER_TEXT_MAX];

    if (isinf(real))
        buf_add_str(text, real < 0 ? STR("-Infinity") : STR("Infinity"));
    else
        buf_add(text, digits, number_format(digits, real));
}

static void add_json(struct buf *text, const struct value *value, unsigned oid)
{
    switch (is_json_array(value) ? oid : OID_JSON) {
    case OID_TEXT:
    case OID_JSON:
    case OID_UNKNOWN:
    case OID_VARCHAR:
    case OID_JSONB: buf_add_str(text, value->bytes); break;
    default:
        pg_array_from_json(text, value->bytes, oid == OID_JSON_ARRAY || oid == OID_JSONB_ARRAY);
    }
}

static int add_text(struct pg_params *params, const struct value *value, unsigned oid,
                    struct fault *fault)
{
    struct buf *text = &params->text;

    switch (value->kind) {
    case VALUE_BOOL: buf_add_str(text, value->integer ? STR("true") : STR("false")); break;
    case VALUE_INT: buf_printf(text, "%" PRId64, value->integer); break;
    case VALUE_REAL: add_real(text, value->real); break;
    case VALUE_JSON: add_json(text, value, oid); break;
    default:
        if (value->bytes.len && memchr(value->bytes.at, '\0', value->bytes.len))
            return fault_set(fault, "sql",
                             "parameter $%u has a zero byte, which no text of PostgreSQL can "
                             "hold: db.blob(s) makes bytes of it",
                             params->count + 1);
        buf_add_str(text, value->bytes);
    }
    buf_add_byte(text, '\0');
    return 0;
}

/* Bytes go as they are, which is the binary form of bytea. */
static int add(struct pg_params *params, const struct value *value, unsigned oid,
               struct fault *fault)
{
    unsigned i  = params->count;
    int      rc = 0;

    params->values[i]  = NULL;
    params->offsets[i] = NO_OFFSET;
    params->lengths[i] = 0;
    params->formats[i] = 0;
    if (value->kind == VALUE_BLOB) {
        params->values[i]  = value->bytes.len ? value->bytes.at : "";
        params->lengths[i] = (int)value->bytes.len;
        params->formats[i] = 1;
    } else if (value->kind != VALUE_NULL) {
        params->offsets[i] = params->text.len;
        rc                 = add_text(params, value, oid, fault);
    }
    params->count++;
    return rc;
}

int pg_params_fill(struct pg_params *params, const struct values *values, const unsigned *types,
                   unsigned type_count, struct fault *fault)
{
    struct str   rest = values_all(values);
    struct value value;

    params->count = 0;
    buf_clear(&params->text);
    buf_shrink(&params->text, ROOM_KEPT);
    if (values->count > PG_PARAMS_MAX || !make_room(params, values->count))
        return fault_set(fault, "too_large", "more than %d parameters", PG_PARAMS_MAX);
    while (values_next(&rest, &value)) {
        unsigned oid = params->count < type_count ? types[params->count] : 0;

        if (add(params, &value, oid, fault) != 0)
            return -1;
    }
    if (params->text.failed)
        return fault_set(fault, "too_large", "the values are too large for one statement");
    for (unsigned i = 0; i < params->count; i++)
        if (params->offsets[i] != NO_OFFSET)
            params->values[i] = params->text.at + params->offsets[i];
    return 0;
}
