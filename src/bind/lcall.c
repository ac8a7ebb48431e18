#include "bind/lcall.h"

#include <string.h>

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lhttp_state.h"
#include "bind/lsite.h"

/* A view has its number at 1. */
static double number_at(lua_State *L, int index)
{
    double number;

    if (lua_type(L, index) != LUA_TTABLE)
        return lua_tonumber(L, index);
    lua_rawgeti(L, index, 1);
    number = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return number;
}

struct lcall *lcall_to(lua_State *L, int index)
{
    struct lhttp *http = env_of(L)->http;

    return http ? lcall_find(http->calls, number_at(L, index)) : NULL;
}

static bool is_view(lua_State *L, int index)
{
    const char *name;
    bool        is;

    if (lua_type(L, index) != LUA_TTABLE || !luaL_getmetafield(L, index, "__name"))
        return false;
    name = lua_tostring(L, -1);
    is   = name && (strcmp(name, "srv.Request") == 0 || strcmp(name, "srv.Response") == 0);
    lua_pop(L, 1);
    return is;
}

/* `res.json { ... }` has its value where res belongs. A number is a view's, or a value. */
static const char *why_no_call(lua_State *L, int index)
{
    if (is_view(L, index))
        return "this request has ended";
    if (lua_type(L, index) == LUA_TNUMBER)
        return "this request has ended, or a method of `req` or `res` was called without its colon";
    return "methods of `req` and `res` stand behind a colon: res:json(v), not res.json(v)";
}

struct lcall *lcall_check(lua_State *L, int index)
{
    struct lcall *call = lcall_to(L, index);

    if (!call)
        lerror_misuse(L, why_no_call(L, index));
    return call;
}

static void fini_buf(void *arg)
{
    buf_fini(arg);
}

struct buf *lcall_buf(struct lcall *call, size_t bytes_max)
{
    struct buf *b = arena_alloc(&call->ex->arena, sizeof(*b));

    buf_init(b, bytes_max);
    arena_defer(&call->ex->arena, fini_buf, b);
    return b;
}

struct str lcall_id(struct lcall *call)
{
    if (!call->id.at) {
        rand_id(call->made_id);
        call->id = str_make(call->made_id, sizeof(call->made_id));
    }
    return call->id;
}

void lcall_set_id(struct lcall *call, struct str id)
{
    call->id = arena_copy(&call->ex->arena, id);
}

const char *lcall_label(const struct lcall *call)
{
    return call->route ? call->route->label : "(no route)";
}

/* --- anchors ------------------------------------------------------------------------------------- */

/* One table for each kind, so that slots, which are dense, make arrays of them. */
static void push_anchors(lua_State *L, const struct lcall *call, enum lcall_anchor anchor)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->site->anchor_refs[anchor]);
}

void lcall_keep(lua_State *L, struct lcall *call, enum lcall_anchor anchor)
{
    push_anchors(L, call, anchor);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, (int)call->slot + 1);
    lua_pop(L, 2);
    call->anchors |= 1u << anchor;
}

void lcall_push_kept(lua_State *L, const struct lcall *call, enum lcall_anchor anchor)
{
    if (!(call->anchors & 1u << anchor)) {
        lua_pushnil(L);
        return;
    }
    push_anchors(L, call, anchor);
    lua_rawgeti(L, -1, (int)call->slot + 1);
    lua_remove(L, -2);
}

void lcall_forget(lua_State *L, struct lcall *call, enum lcall_anchor anchor)
{
    if (!(call->anchors & 1u << anchor))
        return;
    push_anchors(L, call, anchor);
    lua_pushnil(L);
    lua_rawseti(L, -2, (int)call->slot + 1); /* the place exists: nothing is allocated */
    lua_pop(L, 1);
    call->anchors &= ~(1u << anchor);
}
