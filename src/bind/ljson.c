#include "bind/ljson.h"

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/lstr.h"

enum {
    TEXT_BYTES_MAX = 256 << 20, /* of what encode() makes */
    KEPT_BYTES_MAX = 64 << 10,  /* of its buffer, between calls */
};

/* --- the module ------------------------------------------------------------------------------ */

/* Refuses a table whose metatable is not a mark: it would lose it. */
static void check_markable(lua_State *L)
{
    enum ljson_mark mark;

    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_getmetatable(L, 1))
        return;
    mark = ljson_table_mark(L);
    if (mark == LJSON_MARK_NONE || mark == LJSON_MARK_CALLS)
        luaL_argerror(L, 1, "it has a metatable of its own (__tojson can make what it means)");
}

/* object(t, [order]) -> t */
static int mark_object(lua_State *L)
{
    lua_settop(L, 2);
    check_markable(L);
    if (lua_isnil(L, 2)) {
        ljson_push_mark(L, LJSON_MARK_OBJECT);
    } else {
        luaL_checktype(L, 2, LUA_TTABLE);
        ljson_push_order(L, 2);
    }
    lua_setmetatable(L, 1);
    lua_settop(L, 1);
    return 1;
}

/* array(t) -> t */
static int mark_array(lua_State *L)
{
    check_markable(L);
    ljson_mark_array(L, 1);
    lua_settop(L, 1);
    return 1;
}

static enum ljson_mark mark_of(lua_State *L, int index)
{
    if (!lua_istable(L, index))
        return LJSON_MARK_CALLS; /* neither */
    if (!lua_getmetatable(L, index))
        return LJSON_MARK_NONE;
    return ljson_table_mark(L);
}

/* is_array(v) -> boolean */
static int is_array(lua_State *L)
{
    enum ljson_mark    mark = mark_of(L, 1);
    struct ljson_shape shape;

    if (mark == LJSON_MARK_NONE) {
        shape = ljson_table_shape(L, 1);
        if (!shape.others && shape.last == shape.count)
            mark = LJSON_MARK_ARRAY;
    }
    lua_pushboolean(L, mark == LJSON_MARK_ARRAY);
    return 1;
}

/* is_object(v) -> boolean */
static int is_object(lua_State *L)
{
    enum ljson_mark    mark = mark_of(L, 1);
    struct ljson_shape shape;

    if (mark == LJSON_MARK_NONE) {
        shape = ljson_table_shape(L, 1);
        if (shape.others && !shape.count)
            mark = LJSON_MARK_OBJECT;
    }
    lua_pushboolean(L, mark == LJSON_MARK_OBJECT || mark == LJSON_MARK_ORDERED);
    return 1;
}

/* The buffer of encode(): a full userdata, so that it goes with the VM. */
struct scratch {
    struct buf buf;
    bool       busy; /* a __tostring of cdata called encode() again */
};

static int scratch_gc(lua_State *L)
{
    struct scratch *scratch = lua_touserdata(L, 1);

    buf_fini(&scratch->buf);
    return 0;
}

static struct scratch *push_scratch(lua_State *L)
{
    struct scratch *scratch = lua_newuserdata(L, sizeof(*scratch));

    buf_init(&scratch->buf, TEXT_BYTES_MAX);
    scratch->busy = false;
    if (luaL_newmetatable(L, "srv.json.scratch")) {
        lua_pushcfunction(L, scratch_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return scratch;
}

static int push_encoded(lua_State *L, struct scratch *scratch, enum ljson_code code)
{
    switch (code) {
    case LJSON_OK: lua_pushlstring(L, scratch->buf.at, scratch->buf.len); return 1;
    case LJSON_CALLS: lua_pushboolean(L, 0); return 1;
    case LJSON_TOO_LARGE: lua_pushliteral(L, "the value is too large for JSON"); break;
    case LJSON_MISUSE: break;
    }
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* encode(v, [pretty]) -> string | nil, message | false */
static int encode(lua_State *L)
{
    struct scratch *scratch = lua_touserdata(L, lua_upvalueindex(1));
    unsigned        flags   = lua_toboolean(L, 2) ? LJSON_PRETTY : 0;
    enum ljson_code code;
    int             count;

    luaL_checkany(L, 1);
    if (scratch->busy)
        scratch = push_scratch(L);
    scratch->busy = true;
    buf_clear(&scratch->buf);
    code          = ljson_encode(L, 1, &scratch->buf, flags);
    scratch->busy = false;
    count         = push_encoded(L, scratch, code);
    buf_clear(&scratch->buf);
    buf_shrink(&scratch->buf, KEPT_BYTES_MAX);
    return count;
}

/* decode(text, [depth], [strict]) -> v | nil, err */
static int decode(lua_State *L)
{
    struct str          text;
    struct ljson_decode options = { .depth_max = LJSON_DEPTH };

    text              = lstr_check(L, 1);
    options.depth_max = (unsigned)luaL_optinteger(L, 2, LJSON_DEPTH);
    options.strict    = lua_toboolean(L, 3);
    luaL_argcheck(L, options.depth_max >= 1 && options.depth_max <= LJSON_DEPTH_MAX, 2,
                  "from 1 to 256");
    return ljson_decode(L, text, &options);
}

int ljson_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "decode", decode },       { "object", mark_object }, { "array", mark_array },
        { "is_object", is_object }, { "is_array", is_array },  { NULL, NULL },
    };

    lua_createtable(L, 0, 9);
    luaL_register(L, NULL, FUNCTIONS);
    push_scratch(L);
    lua_pushcclosure(L, encode, 1);
    lua_setfield(L, -2, "encode");
    ljson_push_null(L);
    lua_setfield(L, -2, "null");
    ljson_push_mark(L, LJSON_MARK_OBJECT);
    lua_setfield(L, -2, "object_mark");
    ljson_push_mark(L, LJSON_MARK_ARRAY);
    lua_setfield(L, -2, "array_mark");
    return 1;
}
