/* bind/ljson_encode.h - Lua values to JSON (bind/ljson.h says to which). */
#ifndef BIND_LJSON_ENCODE_H
#define BIND_LJSON_ENCODE_H

#include <lua.h>

struct buf;

enum ljson_code {
    LJSON_OK,
    LJSON_MISUSE,    /* no JSON form: a message that names the path was pushed */
    LJSON_CALLS,     /* a __tojson stands in it, and C calls no Lua: nothing was pushed. Encode what
                      * srv.base.json's resolve(value) returns; it may wait. */
    LJSON_TOO_LARGE, /* OUT's bound was hit: nothing was pushed */
};

enum {
    LJSON_PRETTY = 1, /* two blanks for each level, one member a line */
};

/* Appends the value at INDEX to OUT; on any failure OUT is as before. Bytes that are no UTF-8
 * become U+FFFD. Calls no Lua function but the __tostring of 64-bit cdata, and raises only for want
 * of memory, so call it protected. */
enum ljson_code ljson_encode(lua_State *L, int index, struct buf *out, unsigned flags);

#endif
