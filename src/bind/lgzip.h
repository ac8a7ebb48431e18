/* bind/lgzip.h - srv.core.gzip: a text made small, for files that commands write. */
#ifndef BIND_LGZIP_H
#define BIND_LGZIP_H

#include <lua.h>

int lgzip_open(lua_State *L);

#endif
