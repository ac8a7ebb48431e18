#include "base/units.h"

#include <math.h>

#include "base/compiler.h"

struct unit {
    struct str name;
    double     factor;
};

static const struct unit DURATIONS[] = {
    { STR_INIT("ms"), 1 },   { STR_INIT("s"), 1e3 },    { STR_INIT(""), 1e3 },
    { STR_INIT("m"), 60e3 }, { STR_INIT("h"), 3600e3 }, { STR_INIT("d"), 86400e3 },
};
static const struct unit SIZES[] = {
    { STR_INIT(""), 1 },         { STR_INIT("B"), 1 },
    { STR_INIT("KiB"), 1024.0 }, { STR_INIT("kB"), 1e3 },
    { STR_INIT("MB"), 1e6 },     { STR_INIT("MiB"), 1048576.0 },
    { STR_INIT("GB"), 1e9 },     { STR_INIT("GiB"), 1073741824.0 },
};

enum { LONGEST_NUMBER = 20 };

/* Digits with at most one point, by hand: strtod() would take "0x10", "inf" and a locale's comma. */
static size_t read_number(struct str text, double *out)
{
    double value = 0, scale = 1;
    bool   fraction = false;
    size_t at, digits = 0;

    for (at = 0; at < text.len && at < LONGEST_NUMBER; at++) {
        char byte = text.at[at];

        if (byte == '.' && !fraction) {
            fraction = true;
        } else if (byte >= '0' && byte <= '9') {
            value = value * 10 + (byte - '0');
            scale *= fraction ? 10 : 1;
            digits++;
        } else {
            break;
        }
    }
    *out = value / scale;
    return digits ? at : 0;
}

static bool read_with_unit(struct str text, const struct unit *units, size_t count, double max,
                           uint64_t *out)
{
    double value;
    size_t used = read_number(text, &value);

    if (!used)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!str_is(str_from(text, used), units[i].name))
            continue;
        value *= units[i].factor;
        if (value > max)
            return false;
        *out = (uint64_t)llround(value);
        return true;
    }
    return false;
}

bool units_duration_ms(struct str text, uint64_t *ms)
{
    return read_with_unit(text, DURATIONS, ARRAY_LEN(DURATIONS), 365.25e3 * 86400e3, ms);
}

bool units_bytes(struct str text, uint64_t *bytes)
{
    return read_with_unit(text, SIZES, ARRAY_LEN(SIZES), 9007199254740992.0, bytes);
}

bool units_next_size(struct str *rest, struct str *name, uint64_t *bytes)
{
    struct str element;
    size_t     equals;

    if (!str_next(rest, ',', &element))
        return false;
    equals = str_find(element, '=');
    *name  = str_trim(str_make(element.at, equals));
    return name->len > 0 && equals < element.len &&
           units_bytes(str_trim(str_from(element, equals + 1)), bytes);
}
