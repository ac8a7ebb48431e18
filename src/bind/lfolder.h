/* bind/lfolder.h - what lies in a folder of the app, for what is read while it loads. */
#ifndef BIND_LFOLDER_H
#define BIND_LFOLDER_H

#include <lua.h>

/* srv.core.folder: files(path) -> array of relative paths | nil, err (not_found, fs) */
int lfolder_open(lua_State *L);

#endif
