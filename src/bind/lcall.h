/* bind/lcall.h - a call as the Lua functions of req and res find it, what they keep in it and in Lua. */
#ifndef BIND_LCALL_H
#define BIND_LCALL_H

#include <stddef.h>

#include <lua.h>

#include "base/str.h"
#include "bind/lcall_table.h"

/* The call that the view or the number at INDEX stands for; raises when it has ended. */
struct lcall *lcall_check(lua_State *L, int index);
/* The same, NULL when it has ended. */
struct lcall *lcall_to(lua_State *L, int index);

/* An empty buf that ends with the exchange. */
struct buf *lcall_buf(struct lcall *call, size_t bytes_max);

/* The request's id; made when first asked for. */
struct str lcall_id(struct lcall *call);
/* The request is called ID from now on; copied. */
void lcall_set_id(struct lcall *call, struct str id);
/* "GET /users/:id", or a phrase for a path without a route. */
const char *lcall_label(const struct lcall *call);

/* Takes the value on top of L off and keeps it. L must have memory to grow a table: protected. */
void lcall_keep(lua_State *L, struct lcall *call, enum lcall_anchor anchor);
/* Pushes what was kept, or nil. */
void lcall_push_kept(lua_State *L, const struct lcall *call, enum lcall_anchor anchor);
/* Forgets it. Needs no protection. */
void lcall_forget(lua_State *L, struct lcall *call, enum lcall_anchor anchor);

#endif
