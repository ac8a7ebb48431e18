#include "http/route_segment.h"

#include "base/arena.h"
#include "base/codec.h"
#include "http/route_pattern.h"

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

/* --- types ----------------------------------------------------------------------------------- */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Cuts the digits off *TEXT's front; their number. */
static size_t skip_digits(struct str *text)
{
    size_t count = 0;

    while (count < text->len && is_digit(text->at[count]))
        count++;
    *text = str_from(*text, count);
    return count;
}

static bool skip_byte(struct str *text, char byte)
{
    if (text->len == 0 || text->at[0] != byte)
        return false;
    *text = str_from(*text, 1);
    return true;
}

/* Beyond 2^53 a number would not be the one that was sent. */
static bool is_int(struct str text)
{
    uint64_t value;

    skip_byte(&text, '-');
    return str_to_u64(text, UINT64_C(1) << 53, &value);
}

static bool is_number(struct str text)
{
    skip_byte(&text, '-');
    if (skip_digits(&text) == 0)
        return false;
    if (skip_byte(&text, '.') && skip_digits(&text) == 0)
        return false;
    if (skip_byte(&text, 'e') || skip_byte(&text, 'E')) {
        if (!skip_byte(&text, '-'))
            skip_byte(&text, '+');
        if (skip_digits(&text) == 0)
            return false;
    }
    return text.len == 0;
}

static bool is_hex(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (codec_hex_digit(text.at[i]) < 0)
            return false;
    return true;
}

static bool is_uuid(struct str text)
{
    static const size_t GROUPS[] = { 8, 4, 4, 4, 12 };

    if (text.len != 36)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
        if ((i && !skip_byte(&text, '-')) || !is_hex(str_make(text.at, GROUPS[i])))
            return false;
        text = str_from(text, GROUPS[i]);
    }
    return true;
}

static bool is_slug(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.at[i];

        if (!(byte >= 'a' && byte <= 'z') && !is_digit(byte) && byte != '-')
            return false;
    }
    return true;
}

static unsigned two_digits(const char *at)
{
    return (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
}

static bool is_date(struct str text)
{
    static const unsigned char DAYS[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    unsigned                   year, month, day;

    if (text.len != 10 || text.at[4] != '-' || text.at[7] != '-')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (i != 4 && i != 7 && !is_digit(text.at[i]))
            return false;
    year  = two_digits(text.at) * 100 + two_digits(text.at + 2);
    month = two_digits(text.at + 5);
    day   = two_digits(text.at + 8);
    if (month < 1 || month > 12 || day < 1 || day > DAYS[month - 1])
        return false;
    return month != 2 || day != 29 || (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static bool is_word_of(struct str rule, struct str text)
{
    struct str word;

    while (str_next(&rule, '|', &word))
        if (str_is(word, text))
            return true;
    return false;
}

bool route_value_fits(const struct route_param *param, struct str value, struct route_accept accept)
{
    if (value.len == 0)
        return param->type == ROUTE_REST;

    switch (param->type) {
    case ROUTE_TEXT:
    case ROUTE_REST: return true;
    case ROUTE_INT: return is_int(value);
    case ROUTE_NUMBER: return is_number(value);
    case ROUTE_UUID: return is_uuid(value);
    case ROUTE_SLUG: return is_slug(value);
    case ROUTE_HEX: return is_hex(value);
    case ROUTE_DATE: return is_date(value);
    case ROUTE_WORDS: return is_word_of(param->rule, value);
    case ROUTE_LUA: return accept.fn && accept.fn(accept.arg, param->rule, value);
    }
    return false;
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
