#include "bind/lcall.h"

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

struct lcall *lcall_check(lua_State *L, int index)
{
    struct lcall *call = lcall_to(L, index);

    if (!call)
        lerror_misuse(L, "this request has ended (or `req` and `res` were called without a colon)");
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
