/* bind/lfs_file.h - srv.core.fs_file: open files, read and written on the pool's lane for files.
 *
 * One call at a time; a call that is called off closes the file, since nobody knows how far it came.
 * lua/srv/async/file.lua makes a reader of it. */
#ifndef BIND_LFS_FILE_H
#define BIND_LFS_FILE_H

#include <lua.h>

/* srv.core.fs_file: { open, temp, read, write, seek, close, is_busy } */
int lfs_file_open(lua_State *L);

#endif
