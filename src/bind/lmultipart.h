/* bind/lmultipart.h - srv.core.multipart: forms with files, read from the pieces that Lua has.
 * lua/srv/web/multipart.lua makes fields, files and readers of them. */
#ifndef BIND_LMULTIPART_H
#define BIND_LMULTIPART_H

#include <lua.h>

/* srv.core.multipart: { new, next, finish } */
int lmultipart_open(lua_State *L);

#endif
