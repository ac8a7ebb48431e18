#include "http/form.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

static bool is_utf8(struct str s)
{
    while (s.len) {
        size_t sequence = text_utf8_len(s);

        if (!sequence)
            return false;
        s = str_from(s, sequence);
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
