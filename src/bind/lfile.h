/* bind/lfile.h - answers from files: folders that are served, res:file(). */
#ifndef BIND_LFILE_H
#define BIND_LFILE_H

#include <lua.h>

#include "http/file_answer.h"
#include "http/files.h"

/* A file that is recorded as the answer; in the exchange's arena. */
struct lfile {
    struct files_file  file; /* fd -1 once it was handed over */
    struct file_answer plan;
};

/* Adds `folder`, `find_file` and `rest` to the module on top. */
void lfile_register(lua_State *L);

#endif
