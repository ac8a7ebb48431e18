/* base/format.h - what a text is that claims to be an address, a date or an identifier.
 *
 * Each looks at every byte once and allocates nothing. All of these texts are ASCII. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stdbool.h>

#include "base/str.h"

/* RFC 1123, 2.1: letters, digits and inner hyphens in labels of 1..63, 253 in all, no final dot. */
bool format_is_host(struct str text);
/* RFC 6943, 3.1.1 "strict": four decimal numbers without leading zeros. */
bool format_is_ipv4(struct str text);
/* RFC 4291, 2.2. No zone. */
bool format_is_ipv6(struct str text);

/* RFC 5321, 4.1.2: Dot-string "@" Domain, with the lengths of 4.5.3.1. Quoted local parts and address
 * literals are left out as forms do; a domain has a dot, for mail crosses the Internet. */
bool format_is_email(struct str text);
/* RFC 3986, absolute, of the schemes http and https. */
bool format_is_url(struct str text);

/* RFC 3339, 5.6: full-date, full-time, date-time. A leap second (5.7) ends a UTC day only. */
bool format_is_date(struct str text);
bool format_is_time(struct str text);
bool format_is_datetime(struct str text);

/* RFC 9562, 4: 8-4-4-4-12 hexadecimal digits, of any version. */
bool format_is_uuid(struct str text);
/* a-z 0-9 - */
bool format_is_slug(struct str text);
bool format_is_hex(struct str text);
/* RFC 4648, 4: whole groups of four, padded. */
bool format_is_base64(struct str text);

#endif
