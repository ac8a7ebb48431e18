#include "http/url.h"

#include "base/arena.h"
#include "base/codec.h"
#include "base/err.h"

/* The byte that the escape at AT stands for, or -1. END is where the text ends. */
static int escaped_byte(const char *at, const char *end)
{
    int high, low;

    if (end - at < 3 || at[0] != '%')
        return -1;
    high = codec_hex_digit(at[1]);
    low  = codec_hex_digit(at[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static struct str decode(struct arena *arena, struct str s, bool plus_is_space)
{
    const char *from = s.at, *end = s.at + s.len;
    char       *text = arena_alloc(arena, s.len + 1), *to = text;

    while (from < end) {
        int byte = escaped_byte(from, end);

        if (byte >= 0) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = plus_is_space && *from == '+' ? ' ' : *from;
            from++;
        }
    }
    *to = '\0';
    return str_make(text, (size_t)(to - text));
}

struct str url_decode(struct arena *arena, struct str s)
{
    return str_find(s, '%') == s.len ? s : decode(arena, s, false);
}

struct str url_decode_form(struct arena *arena, struct str s)
{
    if (str_find(s, '%') == s.len && str_find(s, '+') == s.len)
        return s;
    return decode(arena, s, true);
}

bool url_escapes_are_sound(struct str s)
{
    for (size_t at = str_find(s, '%'); at < s.len; at += 1 + str_find(str_from(s, at + 1), '%'))
        if (escaped_byte(s.at + at, s.at + s.len) < 0)
            return false;
    return true;
}

/* Counts the dots of the segment that begins at *AT and moves there to the segment's end: 1 and 2
 * are the dangerous ones, everything else is 3. */
static unsigned dots_of_segment(const char **at, const char *end)
{
    unsigned dots = 0;

    while (*at < end) {
        int byte = escaped_byte(*at, end), step = byte < 0 ? 1 : 3;

        if (byte < 0)
            byte = **at;
        if (byte == '/' || byte == '\\')
            break;
        dots = byte == '.' && dots < 3 ? dots + 1 : 3;
        *at += step;
    }
    return dots;
}

bool url_path_climbs(struct str path)
{
    const char *at = path.at, *end = path.at + path.len;

    while (at < end) {
        unsigned dots = dots_of_segment(&at, end);

        if (dots == 1 || dots == 2)
            return true;
        if (at < end)
            at += *at == '%' ? 3 : 1;
    }
    return false;
}

bool url_next_pair(struct str *rest, struct url_pair *pair)
{
    while (rest->len) {
        size_t     end     = str_find(*rest, '&');
        struct str element = str_make(rest->at, end);
        size_t     equals  = str_find(element, '=');

        *rest = end < rest->len ? str_from(*rest, end + 1) : STR_NONE;
        if (!element.len)
            continue;
        pair->name  = str_make(element.at, equals);
        pair->value = str_from(element, equals < element.len ? equals + 1 : equals);
        return true;
    }
    return false;
}

/* Elements, empty ones included: never less than the pairs. */
static size_t count_elements(struct str query)
{
    size_t count = 0;

    while (query.len) {
        size_t end = str_find(query, '&');

        count++;
        query = end < query.len ? str_from(query, end + 1) : STR_NONE;
    }
    return count;
}

int url_parse_query(struct arena *arena, struct str query, unsigned pairs_max,
                    struct url_pair **out, unsigned *count)
{
    size_t           room  = count_elements(query);
    unsigned         found = 0;
    struct url_pair *pairs, raw;

    if (room > pairs_max)
        room = pairs_max;
    pairs = arena_alloc(arena, (room + 1) * sizeof(*pairs)); /* never nothing: *OUT is a pointer */
    while (url_next_pair(&query, &raw)) {
        if (found == pairs_max)
            return ERR_TOO_LARGE;
        pairs[found++] = (struct url_pair){ url_decode_form(arena, raw.name),
                                            url_decode_form(arena, raw.value) };
    }
    *out   = pairs;
    *count = found;
    return 0;
}
