/* bind/lasset.h - srv.core.asset: files that the binary carries as they are (cmake/assets.cmake). */
#ifndef BIND_LASSET_H
#define BIND_LASSET_H

#include <lua.h>

int lasset_open(lua_State *L);

#endif
