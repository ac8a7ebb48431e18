/* bind/ljson_decode.h - JSON to Lua values. */
#ifndef BIND_LJSON_DECODE_H
#define BIND_LJSON_DECODE_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct ljson_decode {
    unsigned depth_max; /* 0: LJSON_DEPTH */
    bool     strict;    /* only an object or an array at the top */
};

/* Pushes the value and returns 1, or pushes nil and an error object (bad_json, with `line`,
 * `column` in characters and `path`, a JSON pointer) and returns 2. OPTIONS NULL: all defaults. A
 * byte order mark at the front is skipped, the last of equal keys wins; what RFC 8259 does not
 * allow is refused, so are lone surrogates (they are no text), text that is no UTF-8, and numbers
 * that no double can hold. Raises only for want of memory. */
int ljson_decode(lua_State *L, struct str text, const struct ljson_decode *options);

#endif
