#include "bind/lmultipart.h"

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lstr.h"
#include "http/multipart.h"

static const char METATABLE[] = "srv.Multipart";

static struct multipart *check_parser(lua_State *L)
{
    return luaL_checkudata(L, 1, METATABLE);
}

static int collect(lua_State *L)
{
    multipart_fini(check_parser(L));
    return 0;
}

/* false, status, why */
static int push_fault(lua_State *L, const struct multipart *m)
{
    lua_pushboolean(L, 0);
    lua_pushinteger(L, (lua_Integer)m->fault);
    lua_pushstring(L, m->why);
    return 3;
}

/* new(content_type) -> parser | false, status, why */
static int new_parser(lua_State *L)
{
    struct str        type = lstr_check(L, 1);
    struct multipart *m    = lclass_new(L, METATABLE, sizeof(*m));

    return multipart_init(m, type) ? 1 : push_fault(L, m);
}

/* What stands there twice is joined, as in a request's head. */
static void push_headers(lua_State *L, const struct multipart_part *part)
{
    lua_createtable(L, 0, (int)part->count);
    for (unsigned i = 0; i < part->count; i++) {
        lstr_push(L, part->fields[i].name);
        lua_pushvalue(L, -1);
        lua_rawget(L, -3);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lstr_push(L, part->fields[i].value);
        } else {
            lua_pushliteral(L, ", ");
            lstr_push(L, part->fields[i].value);
            lua_concat(L, 3);
        }
        lua_rawset(L, -3);
    }
}

/* { name, filename?, type?, unnamed, headers } */
static void push_part(lua_State *L, const struct multipart_part *part)
{
    lua_createtable(L, 0, 5);
    lstr_push(L, part->name);
    lua_setfield(L, -2, "name");
    lstr_push_or_nil(L, part->file_name);
    lua_setfield(L, -2, "filename");
    lstr_push_or_nil(L, part->type);
    lua_setfield(L, -2, "type");
    lua_pushboolean(L, part->unnamed);
    lua_setfield(L, -2, "unnamed");
    push_headers(L, part);
    lua_setfield(L, -2, "headers");
}

/* A piece that is all of the chunk needs no copy. */
static void push_data(lua_State *L, struct str data, struct str chunk)
{
    if (data.len == chunk.len)
        lua_pushvalue(L, 2);
    else
        lstr_push(L, data);
}

/* next(parser, chunk, at) -> "part", at, part | "data", at, bytes | "end", at
 *                          | nil: CHUNK from its byte AT (0 is the first) on is taken
 *                          | false, status, why */
static int next(lua_State *L)
{
    struct multipart   *m     = check_parser(L);
    struct str          chunk = lstr_check(L, 2), in, data;
    lua_Integer         at    = luaL_checkinteger(L, 3);
    enum multipart_step step;

    luaL_argcheck(L, at >= 0 && (size_t)at <= chunk.len, 3, "outside of the chunk");
    in   = str_from(chunk, (size_t)at);
    step = multipart_next(m, &in, &data);
    if (step == MULTIPART_MORE)
        return 0;
    if (step == MULTIPART_BROKEN)
        return push_fault(L, m);
    lua_pushstring(L, step == MULTIPART_PART ? "part" : step == MULTIPART_DATA ? "data" : "end");
    lua_pushinteger(L, (lua_Integer)(chunk.len - in.len));
    if (step == MULTIPART_END)
        return 2;
    if (step == MULTIPART_PART)
        push_part(L, &m->part);
    else
        push_data(L, data, chunk);
    return 3;
}

/* finish(parser) -> true | false, status, why */
static int finish(lua_State *L)
{
    struct multipart *m = check_parser(L);

    if (!multipart_finish(m))
        return push_fault(L, m);
    lua_pushboolean(L, 1);
    return 1;
}

int lmultipart_open(lua_State *L)
{
    static const luaL_Reg METHODS[]   = { { "__gc", collect }, { NULL, NULL } };
    static const luaL_Reg FUNCTIONS[] = {
        { "new", new_parser },
        { "next", next },
        { "finish", finish },
        { NULL, NULL },
    };

    lclass_add(L, METATABLE, METHODS);
    lua_createtable(L, 0, 3);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
