#include "http/range.h"

#include <string.h>

enum range_kind { SATISFIABLE, UNSATISFIABLE, MALFORMED };

/* A position of any length: what is beyond all files is their end. */
static bool read_position(struct str text, uint64_t *out)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    if (!str_to_u64(text, UINT64_MAX, out))
        *out = UINT64_MAX;
    return text.len > 0;
}

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
        if (!read_position(last, &number))
            return MALFORMED;
        if (number && !size)
            return MALFORMED; /* all of nothing: satisfiable, but no Content-Range can say so */
        *range = (struct range){ number < size ? size - number : 0, size - 1 };
        return number && size ? SATISFIABLE : UNSATISFIABLE;
    }
    if (!read_position(first, &range->first))
        return MALFORMED;
    range->last = UINT64_MAX;
    if (last.len && (!read_position(last, &range->last) || range->last < range->first))
        return MALFORMED;
    if (range->first >= size)
        return UNSATISFIABLE;
    if (range->last >= size)
        range->last = size - 1;
    return SATISFIABLE;
}

static bool touches(const struct range *a, const struct range *b)
{
    return a->first <= b->last + 1 && b->first <= a->last + 1;
}

static void extend(struct range *range, const struct range *by)
{
    if (by->first < range->first)
        range->first = by->first;
    if (by->last > range->last)
        range->last = by->last;
}

/* Joins what touches the range CHANGED with it, in the place of the one that was asked for first.
 * Ends are below the size here, so one may be added. Returns how many are left. */
static unsigned coalesce(struct range *ranges, unsigned count, unsigned changed)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned into = i < changed ? i : changed, from = i < changed ? changed : i;

        if (i == changed || !touches(&ranges[i], &ranges[changed]))
            continue;
        extend(&ranges[into], &ranges[from]);
        memmove(&ranges[from], &ranges[from + 1], (count - from - 1) * sizeof(*ranges));
        return coalesce(ranges, count - 1, into);
    }
    return count;
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
        ranges[found] = range;
        found         = coalesce(ranges, found + 1, found);
    }
    if (!asked)
        return RANGE_IGNORE;
    *count = found;
    return found ? RANGE_PARTIAL : RANGE_UNSATISFIABLE;
}
