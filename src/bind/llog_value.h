/* bind/llog_value.h - a Lua value as JSON for the log: bounded, masked, in the order of its keys.
 *
 * Reads tables raw: no metamethod runs and nothing raises. For bind/llog.c alone. */
#ifndef BIND_LLOG_VALUE_H
#define BIND_LLOG_VALUE_H

#include <stdbool.h>

#include <lua.h>

#include "base/buf.h"
#include "base/str.h"

enum {
    LLOG_DEPTH_MAX = 6,
    LLOG_KEYS_MAX  = 64,  /* of one table; what is over is counted in "..." */
    LLOG_ITEMS_MAX = 100, /* of one array */
};

/* Appends the value at INDEX. `failed` of OUT: it would have become too large. */
void llog_value(struct buf *out, lua_State *L, int index);

/* Pushes the string keys of the table at INDEX in byte order, at most LLOG_KEYS_MAX. Returns their
 * number; *LEFT_OUT gets that of all other keys, whatever their type. */
int llog_value_keys(lua_State *L, int index, int *left_out);

/* Once for each VM, before the first error object is logged. May raise. */
void llog_value_prepare(lua_State *L);

/* Pushes the member NAME of the table at INDEX, found without making a string; nil if there is
 * none. */
void llog_value_field(lua_State *L, int index, struct str name);

/* A field of this name is never shown: "password", "access_token", "Set-Cookie". */
bool llog_value_is_secret(struct str name);

#endif
