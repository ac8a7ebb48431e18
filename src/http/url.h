/* http/url.h - percent-encoding, paths and queries (RFC 3986; the form rules of WHATWG URL).
 *
 * What travels between the parts of the server stays as the client sent it; whoever needs the text
 * decodes it, exactly once. Encoding is base/codec.h's codec_percent(). */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include <stdbool.h>

#include "base/str.h"

struct arena;

/* %XX becomes its byte. A broken escape stays as it is. Without escapes S itself is returned. */
struct str url_decode(struct arena *arena, struct str s);
/* The same for queries and forms, where "+" is a space. */
struct str url_decode_form(struct arena *arena, struct str s);
/* Whether two hex digits follow each "%". */
bool url_escapes_are_sound(struct str s);

/* Whether a segment of PATH (still encoded) is "." or "..", also when it, its slashes or
 * backslashes are escaped. RFC 3986, 6.2.2.3 has clients remove them; a request that still has one
 * means to leave a folder, so the wire refuses it before any application joins it to a path. */
bool url_path_climbs(struct str path);

struct url_pair {
    struct str name;
    struct str value; /* empty without "=" */
};

/* Cuts the next "name=value" off *REST, still encoded. Empty elements ("a&&b") are passed over.
 * False: there is no more. */
bool url_next_pair(struct str *rest, struct url_pair *pair);

/* All pairs, decoded, in order. 0, or ERR_TOO_LARGE when there are more than PAIRS_MAX: *OUT and
 * *COUNT are not set then. */
int url_parse_query(struct arena *arena, struct str query, unsigned pairs_max,
                    struct url_pair **out, unsigned *count);

#endif
