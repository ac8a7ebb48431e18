/* http/chars.h - which bytes HTTP lets stand where, found eight at a time. */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include <stdbool.h>

#include "base/str.h"

enum chars_kind {
    CHARS_TOKEN  = 1, /* RFC 9110, 5.6.2: methods and field names */
    CHARS_TARGET = 2, /* visible ASCII that a request target may hold */
};

/* Where the run of bytes of KIND that begins at AT ends. */
const char *chars_skip(const char *at, const char *end, enum chars_kind kind);

/* The first control character but tab, or END: what no field value may hold. In a head that is
 * well-formed this is the next line's end, so looking for line ends and refusing the rest is one
 * pass. */
const char *chars_find_control(const char *at, const char *end);

static inline bool chars_are_token(struct str s)
{
    return s.len && chars_skip(s.at, s.at + s.len, CHARS_TOKEN) == s.at + s.len;
}

/* RFC 9110, 5.5. Blanks at the ends are no harm. */
static inline bool chars_are_field_value(struct str s)
{
    return chars_find_control(s.at, s.at + s.len) == s.at + s.len;
}

#endif
