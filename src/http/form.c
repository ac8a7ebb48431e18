#include "http/form.h"

#include "base/arena.h"
#include "base/err.h"

/* Bytes of the UTF-8 sequence at AT (RFC 3629: no overlong forms, no surrogates); 0: none. */
static size_t utf8_sequence(const unsigned char *at, size_t room)
{
    unsigned char first = at[0], low = 0x80, high = 0xbf;
    size_t        len;

    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        len = 2;
    else if (first >= 0xe0 && first <= 0xef)
        len = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        len = 4;
    else
        return 0;
    switch (first) { /* the second byte's range says what the first alone cannot */
    case 0xe0: low = 0xa0; break;
    case 0xed: high = 0x9f; break;
    case 0xf0: low = 0x90; break;
    case 0xf4: high = 0x8f; break;
    default: break;
    }
    if (room < len || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

static bool is_utf8(struct str s)
{
    const unsigned char *at = (const unsigned char *)s.at;

    for (size_t i = 0, step; i < s.len; i += step) {
        step = utf8_sequence(at + i, s.len - i);
        if (!step)
            return false;
    }
    return true;
}

/* Every byte of ISO-8859-1 is the code point of the same number. */
static struct str latin1_to_utf8(struct arena *arena, struct str s)
{
    char *text = arena_alloc(arena, 2 * s.len + 1), *to = text;

    for (size_t i = 0; i < s.len; i++) {
        unsigned char byte = (unsigned char)s.at[i];

        if (byte < 0x80) {
            *to++ = (char)byte;
        } else {
            *to++ = (char)(0xc0 | byte >> 6);
            *to++ = (char)(0x80 | (byte & 0x3f));
        }
    }
    *to = '\0';
    return str_make(text, (size_t)(to - text));
}

int form_parse(struct arena *arena, struct str body, enum form_charset charset, unsigned fields_max,
               struct url_pair **out, unsigned *count)
{
    int rc;

    if (!url_escapes_are_sound(body))
        return ERR_INVALID;
    rc = url_parse_query(arena, body, fields_max, out, count);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < *count; i++) {
        struct url_pair *field = &(*out)[i];

        if (charset == FORM_LATIN1) {
            field->name  = latin1_to_utf8(arena, field->name);
            field->value = latin1_to_utf8(arena, field->value);
        } else if (!is_utf8(field->name) || !is_utf8(field->value)) {
            return ERR_INVALID;
        }
    }
    return 0;
}
