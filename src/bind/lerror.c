#include "bind/lerror.h"

#include <stdarg.h>
#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/lstr.h"
#include "http/message.h"
#include "vm/trace.h"

struct own_code {
    const char *code;
    int         status;
};

/* API, section 5. */
static const struct own_code OWN_CODES[] = {
    { "invalid", 400 },
    { "bad_json", 400 },
    { "bad_form", 400 },
    { "bad_multipart", 400 },
    { "bad_encoding", 400 },
    { "no_row", 404 },
    { "not_found", 404 },
    { "unique", 409 },
    { "foreign_key", 409 },
    { "exists", 409 },
    { "lua", 500 },
    { "no_answer", 500 },
    { "bad_answer", 500 },
    { "answered_twice", 500 },
    { "sql", 500 },
    { "fs", 500 },
    { "exec", 500 },
    { "too_large", 500 },
    { "refused", 502 },
    { "closed", 502 },
    { "dns", 502 },
    { "tls", 502 },
    { "bad_response", 502 },
    { "unexpected_status", 502 },
    { "busy", 503 },
    { "unavailable", 503 },
    { "deadline", 503 },
    { "timeout", 504 },
    { "cancelled", 499 },
    { "conflict", 409 },
    { "check", 409 },
    { "not_null", 500 }, /* validation is there for what a client leaves out */
    { "not_empty", 409 },
    { "no_space", 507 },
    { "too_many_redirects", 502 },
};

int lerror_misuse(lua_State *L, const char *format, ...)
{
    va_list args;

    trace_push_where(L);
    va_start(args, format);
    lua_pushvfstring(L, format, args);
    va_end(args);
    lua_concat(L, 2);
    return lua_error(L);
}

int lerror_status(const char *code)
{
    for (size_t i = 0; i < ARRAY_LEN(OWN_CODES); i++)
        if (strcmp(OWN_CODES[i].code, code) == 0)
            return OWN_CODES[i].status;
    return 500;
}

static void push_error(lua_State *L, const char *code, const char *format, va_list args)
{
    lua_createtable(L, 0, 3);
    lua_pushvfstring(L, format, args);
    lua_setfield(L, -2, "message");
    lua_pushstring(L, code);
    lua_setfield(L, -2, "code");
    lua_pushinteger(L, lerror_status(code));
    lua_setfield(L, -2, "status");
    luaL_newmetatable(L, LERROR_METATABLE);
    lua_setmetatable(L, -2);
}

void lerror_push(lua_State *L, const char *code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    push_error(L, code, format, args);
    va_end(args);
}

int lerror_nil(lua_State *L, const char *code, const char *format, ...)
{
    va_list args;

    lua_pushnil(L);
    va_start(args, format);
    push_error(L, code, format, args);
    va_end(args);
    return 2;
}

/* Which file it was is for the log, also where the status says that the client asked for it. */
int lerror_nil_err(lua_State *L, const char *code, const struct err *err)
{
    lerror_nil(L, code ? code : err_name(err->code), "%s", err->text);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "expose");
    return 2;
}

/* status_of(code) -> integer */
static int status_of(lua_State *L)
{
    lua_pushinteger(L, lerror_status(luaL_checkstring(L, 1)));
    return 1;
}

/* reason(status) -> string: "Not Found" */
static int reason(lua_State *L)
{
    struct str phrase = status_reason((unsigned)luaL_checkinteger(L, 1));

    return lstr_push(L, phrase);
}

int lerror_open(lua_State *L)
{
    lua_createtable(L, 0, 3);
    luaL_newmetatable(L, LERROR_METATABLE);
    lua_setfield(L, -2, "metatable");
    lua_pushcfunction(L, status_of);
    lua_setfield(L, -2, "status_of");
    lua_pushcfunction(L, reason);
    lua_setfield(L, -2, "reason");
    return 1;
}
