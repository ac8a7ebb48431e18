/* bind/lfs.h - srv.core.fs: files and folders by one call each, on the pool's lane for files.
 * lua/srv/async/fs.lua checks what it is given; open files are bind/lfs_file's. */
#ifndef BIND_LFS_H
#define BIND_LFS_H

#include <lua.h>

/* srv.core.fs: { read, write, append, stat, list, mkdir, remove, rename, copy, touch } */
int lfs_open(lua_State *L);

#endif
