/* bind/lfile.h - answers from files: folders that are served, res:file(). */
#ifndef BIND_LFILE_H
#define BIND_LFILE_H

#include <lua.h>

/* Adds `folder`, `find_file`, `list_folder` and `rest` to the module on top. */
void lfile_register(lua_State *L);

#endif
