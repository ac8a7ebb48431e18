#include "bind/lfetch_spec.h"

#include <lauxlib.h>

#include "bind/lstr.h"
#include "http/client_call.h"
#include "http/h1_gate.h"

static struct str field_str(lua_State *L, int index, const char *name)
{
    struct str s;

    lua_getfield(L, index, name);
    s = lstr_at(L, -1);
    lua_pop(L, 1); /* the table keeps it alive */
    return s;
}

static bool field_bool(lua_State *L, int index, const char *name)
{
    bool is;

    lua_getfield(L, index, name);
    is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

/* Milliseconds or bytes; nil is 0. */
static uint64_t field_u64(lua_State *L, int index, const char *name)
{
    lua_Number n;

    lua_getfield(L, index, name);
    n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n > 0 && n < 9e15 ? (uint64_t)n : 0;
}

/* A string is sent with the head; a number is the length of what write() will bring, true means that
 * nobody knows it. */
static void read_body(lua_State *L, int index, struct client_call *call)
{
    lua_getfield(L, index, "body");
    switch (lua_type(L, -1)) {
    case LUA_TSTRING: call->body = lstr_at(L, -1); break;
    case LUA_TNUMBER:
        call->body_kind = CALL_BODY_LENGTH;
        call->body_left = (uint64_t)lua_tonumber(L, -1);
        break;
    case LUA_TBOOLEAN: call->body_kind = CALL_BODY_CHUNKED; break;
    default: break;
    }
    lua_pop(L, 1);
}

/* Whatever Lua has made, no more and no other fields than it meant go on the wire. */
static bool is_sound_head(struct str head, uint64_t fields)
{
    static const struct h1_limits LIMITS = { 64 * 1024, 256 * 1024, 1024 };
    struct h1_head_gate           gate;

    h1_gate_init(&gate);
    return h1_gate_head(&gate, &LIMITS, head.at, head.len) == H1_DONE && gate.scanned == head.len &&
           gate.start == 0 && gate.fields == fields;
}

void lfetch_read_spec(lua_State *L, int index, struct client_call *call, size_t *limit)
{
    luaL_checktype(L, index, LUA_TTABLE);
    call->target = (struct client_target){
        .key        = field_str(L, index, "key"),
        .host       = field_str(L, index, "host"),
        .port       = (uint16_t)field_u64(L, index, "port"),
        .path       = field_str(L, index, "path").at,
        .connect_ms = field_u64(L, index, "connect_ms"),
        .fresh      = field_bool(L, index, "fresh"),
    };
    call->head          = field_str(L, index, "head");
    call->answers_head  = field_bool(L, index, "answers_head");
    call->decodes       = field_bool(L, index, "decodes");
    call->total_ms      = field_u64(L, index, "total_ms");
    call->paces         = field_bool(L, index, "paces");
    call->first_byte_ms = field_u64(L, index, "first_byte_ms");
    *limit              = (size_t)field_u64(L, index, "limit");
    read_body(L, index, call);
    if (!is_sound_head(call->head, field_u64(L, index, "fields")))
        luaL_error(L, "the request's head is not what HTTP allows");
}
