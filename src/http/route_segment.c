#include "http/route_segment.h"

#include "base/arena.h"
#include "base/codec.h"

enum {
    /* Ways that one segment is split among several parameters before it counts as no match. What
     * a person would write needs a handful; "a-a-a-a..." must not cost more than it is worth. */
    SPLITS_MAX = 256,
};

/* --- cutting --------------------------------------------------------------------------------- */

bool route_decode(struct str text, struct arena *arena, struct str *out)
{
    char  *to;
    size_t len;

    *out = text;
    if (str_find(text, '%') == text.len)
        return true;
    to = arena_alloc(arena, text.len);
    if (!codec_percent_decode(text, to, &len))
        return false;
    *out = str_make(to, len);
    return true;
}

void route_segment_cut(struct route_cut *cut, struct str path, size_t start, struct arena *arena)
{
    const char *at = path.at + start, *end = path.at + path.len;
    bool        is_escaped = false;

    while (at < end && *at != '/')
        is_escaped |= *at++ == '%';
    cut->start = start;
    cut->end   = (size_t)(at - path.at);
    cut->text  = str_make(path.at + start, cut->end - start);
    cut->bad   = unlikely(is_escaped) && !route_decode(cut->text, arena, &cut->text);
}

/* --- several parameters in one segment --------------------------------------------------------- */

struct split {
    const struct route_pattern *pattern;
    struct route_accept         accept;
    struct str                 *params; /* NULL: not wanted */
    unsigned                    left;   /* of SPLITS_MAX */
};

static bool split_parts(struct split *s, const struct route_part *part, unsigned count,
                        struct str text);

static bool take_value(struct split *s, const struct route_part *part, unsigned count,
                       struct str value, struct str rest)
{
    if (s->left == 0)
        return false;
    s->left--;
    if (!route_value_fits(&s->pattern->params[part->param], value, s->accept) ||
        !split_parts(s, part + 1, count - 1, rest))
        return false;
    if (s->params)
        s->params[part->param] = value;
    return true;
}

/* The parameter takes as little as it can: up to the first place of the text behind it from which
 * the rest fits too. */
static bool split_param(struct split *s, const struct route_part *part, unsigned count,
                        struct str text)
{
    struct str stop;

    if (count == 1)
        return take_value(s, part, count, text, str_from(text, text.len));

    stop = part[1].text;
    if (count == 2) {
        size_t len = text.len - stop.len;

        return text.len > stop.len &&
               take_value(s, part, count, str_make(text.at, len), str_from(text, len));
    }
    for (size_t len = 1; len < text.len && s->left > 0; len++) {
        const char *hit = memmem(text.at + len, text.len - len, stop.at, stop.len);

        if (!hit)
            return false;
        len = (size_t)(hit - text.at);
        if (take_value(s, part, count, str_make(text.at, len), str_from(text, len)))
            return true;
    }
    return false;
}

static bool split_parts(struct split *s, const struct route_part *part, unsigned count,
                        struct str text)
{
    if (count == 0)
        return text.len == 0;
    if (part->param >= 0)
        return split_param(s, part, count, text);
    return str_starts_with(text, part->text) &&
           split_parts(s, part + 1, count - 1, str_from(text, part->text.len));
}

bool route_segment_fits(const struct route_pattern *pattern, const struct route_segment *segment,
                        struct str text, struct route_accept accept, struct str *params)
{
    struct split s = { pattern, accept, params, SPLITS_MAX };

    return split_parts(&s, &pattern->parts[segment->first_part], segment->part_count, text);
}

/* --- two patterns -------------------------------------------------------------------------------- */

static bool is_same_part(const struct route_pattern *a, const struct route_part *in_a,
                         const struct route_pattern *b, const struct route_part *in_b)
{
    if (in_a->param < 0 || in_b->param < 0)
        return in_a->param < 0 && in_b->param < 0 && str_is(in_a->text, in_b->text);
    return a->params[in_a->param].type == b->params[in_b->param].type &&
           str_is(a->params[in_a->param].rule, b->params[in_b->param].rule);
}

bool route_segment_is_same(const struct route_pattern *a, const struct route_segment *in_a,
                           const struct route_pattern *b, const struct route_segment *in_b)
{
    if (in_a->class != in_b->class || in_a->part_count != in_b->part_count)
        return false;
    for (unsigned i = 0; i < in_a->part_count; i++)
        if (!is_same_part(a, &a->parts[in_a->first_part + i], b, &b->parts[in_b->first_part + i]))
            return false;
    return true;
}
