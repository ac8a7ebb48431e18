/* ws/ws_utf8.h - whether a text that comes in pieces is UTF-8 (RFC 3629): no surrogates, nothing
 * overlong, nothing above U+10FFFF. The first byte that cannot be right is found when it comes. */
#ifndef WS_WS_UTF8_H
#define WS_WS_UTF8_H

#include <stdbool.h>

#include "base/str.h"

/* Zeroed: at the start of a text. */
struct ws_utf8 {
    unsigned char left; /* bytes that the character at hand still needs */
    unsigned char low;  /* what the next of them may be, at least */
    unsigned char high; /* and at most */
};

/* False: it is not. */
bool ws_utf8_feed(struct ws_utf8 *utf8, struct str piece);

/* The text may end here. */
static inline bool ws_utf8_is_whole(const struct ws_utf8 *utf8)
{
    return utf8->left == 0;
}

/* All of a text at once. */
bool ws_utf8_is_text(struct str text);

#endif
