/* bind/ljson.h - JSON (RFC 8259) from Lua values and back (API, section 13).
 *
 * Keys 1..n make an array, other keys an object in byte order, so that equal values give equal
 * bytes in every VM. An empty table is [] unless it is marked; a mark is a metatable, and what
 * ljson_decode() makes is marked. null is one light userdata, the same in all VMs. Numbers read
 * back as they were; integers beyond 2^53 come as strings of their digits. */
#ifndef BIND_LJSON_H
#define BIND_LJSON_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct buf;

enum {
    LJSON_DEPTH     = 64,  /* of what is decoded, unless the caller says otherwise */
    LJSON_DEPTH_MAX = 256, /* of what is encoded, and the most a caller may allow */
};

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

void ljson_push_null(lua_State *L);
bool ljson_is_null(lua_State *L, int index);

/* Marks the table at INDEX: what srv hands out is encoded as what it was, empty or not. */
void ljson_mark_object(lua_State *L, int index);
void ljson_mark_array(lua_State *L, int index);

/* srv.core.json:
 *     encode(v, [pretty]) -> string | nil, message (misuse) | false (a __tojson: see LJSON_CALLS)
 *     decode(text, [depth], [strict]) -> v | nil, err
 *     object(t, [order]) array(t) -> t, marked; object_mark, array_mark: the metatables
 *     is_object(v) is_array(v) -> whether encode() would make one of it
 *     null */
int ljson_open(lua_State *L);

#endif
