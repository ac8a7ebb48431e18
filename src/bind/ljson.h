/* bind/ljson.h - JSON (RFC 8259) from Lua values and back (API, section 13).
 *
 * Keys 1..n make an array, other keys an object in byte order, so that equal values give equal
 * bytes in every VM. An empty table is [] unless it is marked; a mark is a metatable, and what
 * ljson_decode() makes is marked. null is one light userdata, the same in all VMs. Numbers read
 * back as they were; integers beyond 2^53 come as strings of their digits. */
#ifndef BIND_LJSON_H
#define BIND_LJSON_H

#include <lua.h>

#include "bind/ljson_decode.h"
#include "bind/ljson_encode.h"
#include "bind/ljson_table.h"

/* srv.core.json:
 *     encode(v, [pretty]) -> string | nil, message (misuse) | false (a __tojson: see LJSON_CALLS)
 *     decode(text, [depth], [strict]) -> v | nil, err
 *     object(t, [order]) array(t) -> t, marked; object_mark, array_mark: the metatables
 *     is_object(v) is_array(v) -> whether encode() would make one of it
 *     null */
int ljson_open(lua_State *L);

#endif
