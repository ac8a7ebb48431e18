/* vm/marshal.h - Lua values as bytes, so that they can leave their VM: for shared dictionaries, the
 * bus, and Redis.
 *
 * Strings of any bytes, numbers, booleans, null and tables of these. Equal values give equal bytes:
 * the keys of a table are written in an order of their own, so that bytes can be compared instead of
 * values. Bytes are read again only by the same version of srv: the first one names the format. */
#ifndef VM_MARSHAL_H
#define VM_MARSHAL_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct buf;

enum {
    MARSHAL_DEPTH_MAX = 64,  /* tables in tables */
    MARSHAL_MARK_MAX  = 127, /* what marshal_marks.read may return */
};

/* What the floors above know of a table by its metatable (an empty JSON array), as a small number
 * that goes with it. */
struct marshal_marks {
    int (*read)(lua_State *L);             /* of the metatable on top; 0: nothing. Does not raise */
    void (*write)(lua_State *L, int mark); /* to the table on top */
};

/* Appends the value at INDEX of L to OUT. NULL, or why this value cannot be: a sentence about it
 * ("a function cannot be shared"); OUT holds half of it then. What does not fit sets out->failed.
 * Does not raise. MARKS may be NULL. */
const char *marshal_add(lua_State *L, int index, const struct marshal_marks *marks,
                        struct buf *out);

/* Pushes the value. False: these are no bytes of marshal_add()'s, and nothing is pushed. May raise
 * for lack of memory; the bytes must live until it returns. MARKS may be NULL. */
bool marshal_push(lua_State *L, const struct marshal_marks *marks, struct str bytes);

#endif
