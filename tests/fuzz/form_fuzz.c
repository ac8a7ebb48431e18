/* Urlencoded forms against naive_query.h: all fields of a sound form, decoded, in order, as UTF-8
 * whatever they were sent in; else the error that it deserves. links: srv_http */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "fuzz/naive_query.h"
#include "http/form.h"

enum { FIELDS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* By what a code point's bytes decode to, and whether that needed so many of them. */
static bool is_utf8(struct str s)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 };

    for (size_t i = 0; i < s.len;) {
        unsigned char lead  = (unsigned char)s.at[i++];
        unsigned      bytes = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : 4;
        uint32_t      point = bytes == 1 ? lead : lead & (0x7f >> bytes);

        if (bytes == 4 && lead >> 3 != 30)
            return false;
        for (unsigned more = 1; more < bytes; more++) {
            if (i == s.len || ((unsigned char)s.at[i] & 0xc0) != 0x80)
                return false;
            point = point << 6 | ((unsigned char)s.at[i++] & 0x3f);
        }
        if (point < LEAST[bytes] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            return false;
    }
    return true;
}

static struct str decoded(struct arena *arena, struct str text, enum form_charset charset,
                          bool *sound)
{
    char  *bytes = arena_alloc(arena, text.len + 1), *wide, *to;
    size_t len   = naive_decode(bytes, text, sound);

    if (charset == FORM_UTF8)
        return str_make(bytes, len);
    to = wide = arena_alloc(arena, 2 * len + 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte > 0x7f)
            *to++ = byte < 0xc0 ? (char)0xc2 : (char)0xc3;
        *to++ = byte < 0xc0 ? (char)byte : (char)(byte - 0x40);
    }
    return str_make(wide, (size_t)(to - wide));
}

/* What a form is, one field behind the other. */
struct naive_form {
    struct url_pair fields[FIELDS_MAX];
    unsigned        count;
    bool            sound, is_text, too_many;
};

static void read_naively(struct naive_form *form, struct arena *arena, struct str body,
                         enum form_charset charset)
{
    struct str name, value;

    *form = (struct naive_form){ .sound = true, .is_text = true };
    for (size_t at = 0; naive_pair(body, &at, &name, &value);) {
        struct url_pair field = { decoded(arena, name, charset, &form->sound),
                                  decoded(arena, value, charset, &form->sound) };

        form->is_text &= is_utf8(field.name) && is_utf8(field.value);
        form->too_many |= form->count == FIELDS_MAX;
        if (!form->too_many)
            form->fields[form->count++] = field;
    }
}

static void check_form(struct arena *arena, struct str body, enum form_charset charset)
{
    struct naive_form form;
    struct url_pair  *fields;
    unsigned          count;
    int               rc = form_parse(arena, body, charset, FIELDS_MAX, &fields, &count);

    read_naively(&form, arena, body, charset);
    if (rc != 0) {
        must(rc == ERR_TOO_LARGE ? form.too_many : rc == ERR_INVALID);
        must(rc == ERR_TOO_LARGE || !form.sound || !form.is_text);
        return;
    }
    must(form.sound && form.is_text && !form.too_many && count == form.count);
    for (unsigned i = 0; i < count; i++) {
        must(str_is(fields[i].name, form.fields[i].name));
        must(str_is(fields[i].value, form.fields[i].value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct arena_pool pool = { .free_max = 4 };
    struct arena             arena;
    struct str               body = str_make((const char *)bytes, len);

    arena_init(&arena, &pool);
    check_form(&arena, body, FORM_UTF8);
    check_form(&arena, body, FORM_LATIN1);
    arena_reset(&arena);
    return 0;
}
