/* bind/lpath.h - paths that an app names: relative ones begin in its folder. */
#ifndef BIND_LPATH_H
#define BIND_LPATH_H

#include <limits.h>

#include <lua.h>

struct lpath {
    char at[PATH_MAX];
};

/* The string at INDEX as a whole path. NULL; or why it is none: it is empty, holds a NUL (which C would
 * cut short), or is too long. */
const char *lpath_read(lua_State *L, int index, struct lpath *path);

#endif
