/* bind/lhist.h - histograms as objects of Lua: read, compared, never added to. */
#ifndef BIND_LHIST_H
#define BIND_LHIST_H

#include <lua.h>

struct hist;

/* Once for each VM, before lhist_push(). */
void lhist_register(lua_State *L);

/* Pushes an empty one, to be filled by hist_merge(). Raises without memory. */
struct hist *lhist_push(lua_State *L);

#endif
