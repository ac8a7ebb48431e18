/* bind/lpassword.h - srv.core.password: argon2id on the pool's lane for computing. */
#ifndef BIND_LPASSWORD_H
#define BIND_LPASSWORD_H

#include <lua.h>

/* srv.core.password: { hash, verify } */
int lpassword_open(lua_State *L);

#endif
