#include "bind/lpattern.h"

#include <lauxlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "bind/lclass.h"
#include "bind/lstr.h"
#include "http/route.h"

static const char METATABLE[] = "srv.Pattern";

enum { PATH_BYTES_MAX = 64 * 1024 };

struct box {
    struct route_pattern *pattern; /* owned */
};

struct route_pattern *lpattern_check(lua_State *L, int index)
{
    struct box *box = luaL_checkudata(L, index, METATABLE);

    return box->pattern;
}

static int nil_text(lua_State *L, const struct err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->text);
    return 2;
}

/* pattern(text) -> pattern | nil, message */
static int pattern(lua_State *L)
{
    struct str  text = lstr_check(L, 1);
    struct box *box  = lclass_new(L, METATABLE, sizeof(*box));
    struct err  err;

    box->pattern = route_pattern_new(text, &err);
    return box->pattern ? 1 : nil_text(L, &err);
}

static int collect(lua_State *L)
{
    struct box *box = luaL_checkudata(L, 1, METATABLE);

    route_pattern_free(box->pattern);
    box->pattern = NULL;
    return 0;
}

/* pattern:text() -> string */
static int text(lua_State *L)
{
    return lstr_push(L, route_pattern_text(lpattern_check(L, 1)));
}

/* pattern:params() -> { { name, optional }, ... } */
static int params(lua_State *L)
{
    const struct route_pattern *self  = lpattern_check(L, 1);
    unsigned                    count = route_pattern_param_count(self);

    lua_createtable(L, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        const struct route_param *param = route_pattern_param(self, i);

        lua_createtable(L, 0, 2);
        lstr_push(L, param->name);
        lua_setfield(L, -2, "name");
        lua_pushboolean(L, param->optional);
        lua_setfield(L, -2, "optional");
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* pattern:segments() -> integer */
static int segments(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)route_pattern_segments(lpattern_check(L, 1)));
    return 1;
}

/* pattern:covers(route) -> "always" | "maybe" | "never": as a prefix */
static int covers(lua_State *L)
{
    switch (route_prefix_covers(lpattern_check(L, 1), lpattern_check(L, 2))) {
    case ROUTE_COVERS_ALWAYS: lua_pushliteral(L, "always"); break;
    case ROUTE_COVERS_MAYBE: lua_pushliteral(L, "maybe"); break;
    case ROUTE_COVERS_NEVER: lua_pushliteral(L, "never"); break;
    }
    return 1;
}

/* pattern:prefix_fault() -> nil | message: why it cannot be a prefix */
static int prefix_fault(lua_State *L)
{
    struct err err;

    if (route_prefix_check(lpattern_check(L, 1), &err) == 0)
        return 0;
    lua_pushstring(L, err.text);
    return 1;
}

static struct str value_at(lua_State *L, int table, struct str name)
{
    lstr_push(L, name);
    lua_gettable(L, table);
    return lstr_at(L, -1); /* stays on the stack, and with it alive */
}

/* pattern:build(values) -> path | nil, message. Lua patterns are not looked at. */
static int build(lua_State *L)
{
    const struct route_pattern *self  = lpattern_check(L, 1);
    unsigned                    count = route_pattern_param_count(self);
    struct str                  values[ROUTE_PARAMS_MAX];
    struct buf                  path;
    struct err                  err;
    int                         rc;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstack(L, ROUTE_PARAMS_MAX + 2, NULL);
    for (unsigned i = 0; i < count; i++)
        values[i] = value_at(L, 2, route_pattern_param(self, i)->name);
    buf_init(&path, PATH_BYTES_MAX);
    rc = route_pattern_build(self, values, NULL, NULL, &path, &err);
    if (rc == 0)
        lua_pushlstring(L, path.at, path.len);
    buf_fini(&path);
    return rc == 0 ? 1 : nil_text(L, &err);
}

/* host_fault(text) -> nil | message: why it is no pattern for a Host */
static int host_fault(lua_State *L)
{
    struct err            err;
    struct route_pattern *host = route_host_new(lstr_check(L, 1), &err);

    if (!host) {
        lua_pushstring(L, err.text);
        return 1;
    }
    route_pattern_free(host);
    return 0;
}

/* is_method(name) -> boolean: one that the parser knows */
static int is_method(lua_State *L)
{
    lua_pushboolean(L, route_method_of(lstr_check(L, 1)) >= 0);
    return 1;
}

void lpattern_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "text", text },         { "params", params }, { "covers", covers },
        { "segments", segments }, { "build", build },   { "prefix_fault", prefix_fault },
        { "__gc", collect },      { NULL, NULL },
    };
    static const luaL_Reg FUNCTIONS[] = {
        { "pattern", pattern },
        { "host_fault", host_fault },
        { "is_method", is_method },
        { NULL, NULL },
    };

    lclass_add(L, METATABLE, METHODS);
    luaL_register(L, NULL, FUNCTIONS);
}
