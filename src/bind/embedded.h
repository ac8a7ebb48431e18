/* bind/embedded.h - what the build puts into the binary (cmake/embed.cmake). */
#ifndef BIND_EMBEDDED_H
#define BIND_EMBEDDED_H

#include <stddef.h>

#include <lua.h>

/* A Lua file of the server as bytecode. */
struct embedded {
    const char *name; /* "srv.web.app" */
    const char *path; /* "srv/web/app.lua", below lua/ */
    const char *code;
    size_t      len;
};

/* Ends with a name that is NULL. */
extern const struct embedded EMBEDDED[];

/* A file that is carried as it is (cmake/assets.cmake). */
struct asset {
    const char *name; /* "pages/bench.html", its path from the sources' root */
    const char *at, *end;
};

/* In the order of their names; ends with a name that is NULL. */
extern const struct asset ASSETS[];

/* A Lua module written in C: bind/lNAME.c. */
struct core_module {
    const char   *name; /* "srv.core.task" */
    lua_CFunction open;
};

extern const struct core_module CORE_MODULES[];

#endif
