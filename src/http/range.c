#include "http/range.h"

enum range_kind { SATISFIABLE, UNSATISFIABLE, MALFORMED };

/* "500-", "500-999" or "-500": int-range or suffix-range. */
static enum range_kind read_one(struct str spec, uint64_t size, struct range *range)
{
    size_t     dash  = str_find(spec, '-');
    struct str first = str_make(spec.at, dash), last;
    uint64_t   number;

    if (dash == spec.len)
        return MALFORMED;
    last = str_from(spec, dash + 1);
    if (!first.len) { /* a suffix: so many bytes from the end */
        if (!str_to_u64(last, UINT64_MAX, &number))
            return MALFORMED;
        *range = (struct range){ number < size ? size - number : 0, size - 1 };
        return number && size ? SATISFIABLE : UNSATISFIABLE;
    }
    if (!str_to_u64(first, UINT64_MAX, &range->first))
        return MALFORMED;
    range->last = UINT64_MAX;
    if (last.len && (!str_to_u64(last, UINT64_MAX, &range->last) || range->last < range->first))
        return MALFORMED;
    if (range->first >= size)
        return UNSATISFIABLE;
    if (range->last >= size)
        range->last = size - 1;
    return SATISFIABLE;
}

static bool overlaps(const struct range *ranges, unsigned count, const struct range *range)
{
    for (unsigned i = 0; i < count; i++)
        if (range->first <= ranges[i].last && ranges[i].first <= range->last)
            return true;
    return false;
}

enum range_verdict range_parse(struct str value, uint64_t size, struct range *ranges,
                               unsigned *count)
{
    const struct str unit  = STR("bytes=");
    unsigned         found = 0, asked = 0;
    struct str       rest, spec;

    if (value.len <= unit.len || !str_is_nocase(str_make(value.at, unit.len), unit))
        return RANGE_IGNORE;
    rest = str_from(value, unit.len);
    while (str_next(&rest, ',', &spec)) {
        struct range    range;
        enum range_kind kind;

        if (!spec.len)
            continue; /* RFC 9110, 5.6.1: empty elements of a list are nothing */
        kind = read_one(spec, size, &range);
        if (kind == MALFORMED || ++asked > RANGE_COUNT_MAX)
            return RANGE_IGNORE;
        if (kind == UNSATISFIABLE)
            continue;
        if (overlaps(ranges, found, &range))
            return RANGE_IGNORE;
        ranges[found++] = range;
    }
    if (!asked)
        return RANGE_IGNORE;
    *count = found;
    return found ? RANGE_PARTIAL : RANGE_UNSATISFIABLE;
}
