/* bind/lstream.h - answers in pieces: res:write(), and the pump of streams that handlers return. */
#ifndef BIND_LSTREAM_H
#define BIND_LSTREAM_H

#include <lua.h>

/* Adds write, flush, finish and abort to the module on top. */
void lstream_register(lua_State *L);

#endif
