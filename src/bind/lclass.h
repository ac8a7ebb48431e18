/* bind/lclass.h - classes of userdata: a metatable by its name, in which an object finds its methods. */
#ifndef BIND_LCLASS_H
#define BIND_LCLASS_H

#include <stdbool.h>
#include <stddef.h>

#include <lauxlib.h>

/* Makes the class NAME ("srv.pg.Db") of METHODS, "__gc" and the like among them. */
void lclass_add(lua_State *L, const char *name, const luaL_Reg *methods);

/* The same with UPVALUES of the stack, which are popped, for all methods; pushes the metatable, for Lua to
 * add to. */
void lclass_push(lua_State *L, const char *name, const luaL_Reg *methods, int upvalues);

/* Pushes an object: zeroed memory, which "__gc" may see as it is. Nothing raises behind it. */
void *lclass_new(lua_State *L, const char *name, size_t bytes);

/* Whether the value at INDEX is an object of the class. */
bool lclass_is(lua_State *L, int index, const char *name);

#endif
