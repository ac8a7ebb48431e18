#include "bind/lpath.h"

#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/env.h"

const char *lpath_read(lua_State *L, int index, struct lpath *path)
{
    size_t      len;
    const char *text = luaL_checklstring(L, index, &len);
    const char *root = env_of(L)->app_root;
    int         written;

    if (len == 0)
        return "a path is empty";
    if (memchr(text, 0, len))
        return "a path holds a NUL";
    if (text[0] == '/' || !root)
        written = snprintf(path->at, sizeof(path->at), "%s", text);
    else
        written = snprintf(path->at, sizeof(path->at), "%s/%s", root, text);
    return (size_t)written < sizeof(path->at) ? NULL : "a path is too long";
}
