/* http/form.h - application/x-www-form-urlencoded bodies. */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include "base/str.h"
#include "http/url.h"

struct arena;

enum form_charset {
    FORM_UTF8,
    FORM_LATIN1, /* ISO-8859-1: names and values are handed out as UTF-8 all the same */
};

/* The fields of BODY, decoded, in order. 0 and *OUT, *COUNT set; ERR_TOO_LARGE: more than
 * FIELDS_MAX; ERR_INVALID: an escape is broken or the text is not of CHARSET. */
int form_parse(struct arena *arena, struct str body, enum form_charset charset, unsigned fields_max,
               struct url_pair **out, unsigned *count);

#endif
