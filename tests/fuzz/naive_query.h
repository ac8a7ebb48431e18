/* tests/fuzz/naive_query.h - queries and forms by the letter of WHATWG URL ("urlencoded parsing"), slow
 * and simple: what the fuzz targets hold http/url.c and http/form.c against. */
#ifndef TESTS_FUZZ_NAIVE_QUERY_H
#define TESTS_FUZZ_NAIVE_QUERY_H

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The bytes of TEXT to TO, which has room for as many. Returns their number. *SOUND becomes false
 * where a "%" has no two digits. */
static inline size_t naive_decode(char *to, struct str text, bool *sound)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        bool digits = i + 2 < text.len && isxdigit((unsigned char)text.at[i + 1]) &&
                      isxdigit((unsigned char)text.at[i + 2]);

        if (text.at[i] == '%' && digits) {
            char hex[3] = { text.at[i + 1], text.at[i + 2], '\0' };

            to[len++] = (char)strtol(hex, NULL, 16);
            i += 2;
            continue;
        }
        if (text.at[i] == '%')
            *sound = false;
        to[len++] = text.at[i] == '+' ? ' ' : text.at[i];
    }
    return len;
}

/* The pair that begins at *AT of TEXT, still encoded, and *AT past it. False: there is no more. */
static inline bool naive_pair(struct str text, size_t *at, struct str *name, struct str *value)
{
    size_t from, equals;

    while (*at < text.len && text.at[*at] == '&')
        ++*at;
    from = *at;
    while (*at < text.len && text.at[*at] != '&')
        ++*at;
    for (equals = from; equals < *at && text.at[equals] != '=';)
        equals++;
    *name  = str_make(text.at + from, equals - from);
    *value = equals < *at ? str_make(text.at + equals + 1, *at - equals - 1) : STR_NONE;
    return *at > from;
}

/* Whether FOUND is what TEXT stands for. */
static inline bool naive_agrees(struct str found, struct str text, bool *sound)
{
    char  *bytes = malloc(text.len + 1);
    size_t len   = naive_decode(bytes, text, sound);
    bool   same  = str_is(found, str_make(bytes, len));

    free(bytes);
    return same;
}

#endif
