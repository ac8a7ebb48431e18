#include "bind/lmarshal.h"

#include "base/buf.h"
#include "bind/lerror.h"
#include "bind/ljson_table.h"
#include "vm/marshal.h"

enum { KEPT_BYTES = 64 * 1024 }; /* of a buf between two calls */

/* --- marks -------------------------------------------------------------------------------------------- */

/* Without an allocation, or a finalizer might change the table that is being read: so the marks are
 * compared as what they are, tables that lmarshal_prepare() has made sure of. */
static bool is_marked(lua_State *L, enum ljson_mark mark)
{
    bool is;

    ljson_push_mark(L, mark);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 1);
    return is;
}

static int read_mark(lua_State *L)
{
    if (is_marked(L, LJSON_MARK_ARRAY))
        return LJSON_MARK_ARRAY;
    return is_marked(L, LJSON_MARK_OBJECT) ? LJSON_MARK_OBJECT : LJSON_MARK_NONE;
}

static void write_mark(lua_State *L, int mark)
{
    if (mark == LJSON_MARK_ARRAY)
        ljson_mark_array(L, -1);
    else if (mark == LJSON_MARK_OBJECT)
        ljson_mark_object(L, -1);
}

void lmarshal_prepare(lua_State *L)
{
    ljson_push_mark(L, LJSON_MARK_ARRAY);
    ljson_push_mark(L, LJSON_MARK_OBJECT);
    lua_pop(L, 2);
}

/* --- where values are written ------------------------------------------------------------------------ */

static int free_buf(lua_State *L)
{
    buf_fini(lua_touserdata(L, 1));
    return 0;
}

void lmarshal_push_buf(lua_State *L, size_t bytes_max)
{
    struct buf *buf;

    lmarshal_prepare(L);
    buf = lua_newuserdata(L, sizeof(*buf));
    buf_init(buf, bytes_max);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_buf);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
}

struct buf *lmarshal_buf(lua_State *L)
{
    struct buf *buf = lua_touserdata(L, lua_upvalueindex(1));

    buf_clear(buf);
    buf_shrink(buf, KEPT_BYTES);
    return buf;
}

/* --- values ------------------------------------------------------------------------------------------- */

static const struct marshal_marks MARKS = { read_mark, write_mark };

void lmarshal_add(lua_State *L, int index, const char *where, struct buf *out)
{
    const char *fault = marshal_add(L, index, &MARKS, out);

    if (fault)
        lerror_misuse(L, "%s: %s", where, fault);
}

bool lmarshal_push(lua_State *L, struct str bytes)
{
    return marshal_push(L, &MARKS, bytes);
}
