/* bind/lredis_reply.h - commands of Redis from Lua values, replies as Lua values (API, section 9). */
#ifndef BIND_LREDIS_REPLY_H
#define BIND_LREDIS_REPLY_H

#include <stddef.h>

#include <lua.h>

#include "base/str.h"

struct buf;

/* The words of one command stand at FIRST to LAST: strings, and numbers. NULL, or why they are no
 * command: a text that lies on L's stack or is constant. */
const char *lredis_check_words(lua_State *L, int first, int last);
/* After the check; allocates no Lua memory. */
void lredis_add_words(lua_State *L, struct buf *to, int first, int last);

/* Takes the first reply off *REST and pushes it: texts as strings, integers as numbers (beyond 2^53 as
 * strings of digits), nil as nil, arrays with srv.null for nil and error objects in them. A fault is
 * nil and an error object. Returns the number of values. */
int lredis_push_reply(lua_State *L, struct str *rest);
/* As an element of an array: one value. */
void lredis_push_element(lua_State *L, struct str *rest);

#endif
