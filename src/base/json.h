/* base/json.h - JSON's strings (RFC 8259, section 7): written, and read with their escapes. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends TEXT in quotes. Only what must be is escaped; bytes that are no UTF-8 become U+FFFD. */
void json_string(struct buf *out, struct str text);

struct json_span {
    struct str  text;    /* between the quotes, as it stands */
    bool        escaped; /* has escapes: json_unescape() */
    const char *fault;   /* NULL, or what is wrong, at `text.at + text.len` */
};

/* Reads the string whose opening quote stands right before AT; its closing quote is at the end of
 * the span. Control characters, bytes that are no UTF-8, unknown escapes and lone surrogates are
 * faults. */
void json_span(struct json_span *span, const char *at, const char *end);

/* TEXT as json_span() found it without fault, its escapes taken away, to TO, which has room for
 * TEXT's length. Returns the length. */
size_t json_unescape(char *to, struct str text);

#endif
