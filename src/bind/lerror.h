/* bind/lerror.h - the error objects that `nil, err` carries and error() raises (API, section 5). */
#ifndef BIND_LERROR_H
#define BIND_LERROR_H

#include <lua.h>

#include "base/compiler.h"

struct err;

/* The metatable's name in the registry; lua/srv/base/errors.lua fills it with methods. */
#define LERROR_METATABLE "srv.Error"

/* Pushes an error object; its status follows from CODE ("no_row" -> 404, API section 5). */
void lerror_push(lua_State *L, const char *code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Pushes nil and an error object; returns 2. */
int lerror_nil(lua_State *L, const char *code, const char *format, ...) PRINTF_LIKE(3, 4);

/* nil and an error object made of a C floor's error; CODE NULL: the word of err_name(). It names paths
 * and the like, so clients do not read its message. */
int lerror_nil_err(lua_State *L, const char *code, const struct err *err);

/* Raises what the caller did wrong: a text, blamed on the innermost line that is not srv's own. */
int lerror_misuse(lua_State *L, const char *format, ...) PRINTF_LIKE(2, 3);

/* The status that an own code stands for; 500 for an unknown one. */
int lerror_status(const char *code);

/* srv.core.error: { metatable, status_of = fn(code), reason = fn(status) } */
int lerror_open(lua_State *L);

#endif
