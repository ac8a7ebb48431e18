/* The module srv.core.json, null and the marks. */
#include "bind/ljson.h"

#include <limits.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/ljson_table.h"

enum {
    TEXT_BYTES_MAX = 256 << 20, /* of what encode() makes */
    KEPT_BYTES_MAX = 64 << 10,  /* of its buffer, between calls */
};

/* A mark's metatable holds the address of one of these at MARK_SLOT, and no other table does. */
enum { MARK_SLOT = 1, ORDER_SLOT = 2 };
static const char OBJECT = 'o', ORDERED = 'd', ARRAY = 'a';

/* --- null ------------------------------------------------------------------------------------ */

/* The same as lua-cjson's, so that values may come from there. */
void ljson_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, NULL);
}

bool ljson_is_null(lua_State *L, int index)
{
    return lua_islightuserdata(L, index) && !lua_touserdata(L, index);
}

/* --- marks ----------------------------------------------------------------------------------- */

static void push_metatable(lua_State *L, const char *mark, const char *name)
{
    lua_createtable(L, ORDER_SLOT, 1);
    lua_pushlightuserdata(L, (void *)mark);
    lua_rawseti(L, -2, MARK_SLOT);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
}

/* Made when it is first asked for, then kept in the registry under the mark's address. */
void ljson_push_mark(lua_State *L, enum ljson_mark mark)
{
    bool        is_array = mark == LJSON_MARK_ARRAY;
    const char *address  = is_array ? &ARRAY : &OBJECT;

    lua_pushlightuserdata(L, (void *)address);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    push_metatable(L, address, is_array ? "srv.json.array" : "srv.json.object");
    lua_pushlightuserdata(L, (void *)address);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static int absolute(lua_State *L, int index)
{
    return index < 0 && index > LUA_REGISTRYINDEX ? lua_gettop(L) + index + 1 : index;
}

void ljson_mark_object(lua_State *L, int index)
{
    index = absolute(L, index);
    ljson_push_mark(L, LJSON_MARK_OBJECT);
    lua_setmetatable(L, index);
}

void ljson_mark_array(lua_State *L, int index)
{
    index = absolute(L, index);
    ljson_push_mark(L, LJSON_MARK_ARRAY);
    lua_setmetatable(L, index);
}

static enum ljson_mark mark_at(lua_State *L, const void *mark)
{
    if (mark == &OBJECT)
        return LJSON_MARK_OBJECT;
    if (mark == &ARRAY)
        return LJSON_MARK_ARRAY;
    if (mark != &ORDERED)
        return LJSON_MARK_NONE;
    lua_rawgeti(L, -1, ORDER_SLOT);
    return LJSON_MARK_ORDERED;
}

enum ljson_mark ljson_table_mark(lua_State *L)
{
    const void     *address;
    enum ljson_mark mark;

    lua_rawgeti(L, -1, MARK_SLOT);
    address = lua_touserdata(L, -1);
    lua_pop(L, 1);
    mark = mark_at(L, address);
    if (mark != LJSON_MARK_NONE)
        return mark;

    lua_pushliteral(L, "__tojson");
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1))
        mark = LJSON_MARK_CALLS;
    lua_pop(L, 1);
    return mark;
}

struct ljson_shape ljson_table_shape(lua_State *L, int index)
{
    struct ljson_shape shape = { 0, 0, 0 };

    index = absolute(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

        if (key >= 1 && key <= INT_MAX && key == (unsigned)key) {
            shape.count++;
            if (key > shape.last)
                shape.last = (unsigned)key;
        } else {
            shape.others++;
        }
    }
    return shape;
}

/* --- the module ------------------------------------------------------------------------------ */

/* Refuses a table whose metatable is not a mark: it would lose it. */
static void check_markable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_getmetatable(L, 1))
        return;
    lua_rawgeti(L, -1, MARK_SLOT);
    if (mark_at(L, lua_touserdata(L, -1)) == LJSON_MARK_NONE)
        luaL_argerror(L, 1, "it has a metatable of its own (__tojson can make what it means)");
}

/* object(t, [order]) -> t */
static int mark_object(lua_State *L)
{
    check_markable(L);
    if (lua_isnoneornil(L, 2)) {
        ljson_push_mark(L, LJSON_MARK_OBJECT);
    } else {
        luaL_checktype(L, 2, LUA_TTABLE);
        push_metatable(L, &ORDERED, "srv.json.object");
        lua_pushvalue(L, 2);
        lua_rawseti(L, -2, ORDER_SLOT);
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

    text.at           = luaL_checklstring(L, 1, &text.len);
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
