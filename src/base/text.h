/* base/text.h - bytes of strangers made safe to show: inside JSON, and on a terminal. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Length of the well-formed UTF-8 sequence at the start of S (1 to 4), 0 when there is none:
 * no surrogates, nothing overlong, nothing above U+10FFFF (RFC 3629). */
size_t text_utf8_len(struct str s);

/* S as a JSON string with its quotes. What is no UTF-8 becomes U+FFFD, so the line always parses;
 * what could deceive a terminal is escaped, for people look at JSON there too. */
void text_json(struct buf *out, struct str s);

/* S for a person's terminal: control characters (escape sequences, C1 too) and marks that change
 * the direction of writing are shown as \x1b or \u202e, bytes that are no UTF-8 as \xff. Line ends
 * are kept, each followed by INDENT blanks, so that a stranger's line cannot pass for one of ours;
 * INDENT 0 shows them as \n. */
void text_terminal(struct buf *out, struct str s, unsigned indent);

#endif
