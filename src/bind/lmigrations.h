/* bind/lmigrations.h - the files of a folder of migrations, for all databases. */
#ifndef BIND_LMIGRATIONS_H
#define BIND_LMIGRATIONS_H

#include <lua.h>

/* srv.core.migrations: { read(folder, dialect) -> list of { number, file, text, digest } | nil, err } */
int lmigrations_open(lua_State *L);

#endif
