/* bind/lmarshal.h - vm/marshal.h with what srv knows of tables: an empty JSON array stays one. For the
 * shared dictionaries, the bus, and Redis. */
#ifndef BIND_LMARSHAL_H
#define BIND_LMARSHAL_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

#include "base/str.h"

struct buf;

/* Once in each VM, before lmarshal_add(). */
void lmarshal_prepare(lua_State *L);

/* Pushes a buf of BYTES_MAX that lives as long as the VM, as upvalue 1 of what writes values: one that was
 * made for the call would leak when the value raises. It prepares, too. */
void lmarshal_push_buf(lua_State *L, size_t bytes_max);
/* The running function's, emptied. */
struct buf *lmarshal_buf(lua_State *L);

/* Appends the value at INDEX to OUT. What cannot be shared is misuse: an error that begins with WHERE
 * ("cache:set") and blames the caller's line. What does not fit sets out->failed. Allocates
 * nothing in Lua unless it raises. */
void lmarshal_add(lua_State *L, int index, const char *where, struct buf *out);

/* Pushes the value. False: these are no bytes of lmarshal_add()'s, and nothing is pushed. */
bool lmarshal_push(lua_State *L, struct str bytes);

#endif
