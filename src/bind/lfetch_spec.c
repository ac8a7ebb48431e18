#include "bind/lfetch_spec.h"

#include <lauxlib.h>

#include "bind/lfield.h"
#include "bind/lstr.h"
#include "client/client_call.h"
#include "client/client_tls.h"
#include "http/h1_gate.h"

/* Milliseconds or bytes; nil is 0. */
static uint64_t field_u64(lua_State *L, int index, const char *name)
{
    lua_Number n = lfield_number(L, index, name);

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

const struct client_tls *lfetch_read_tls(lua_State *L, int index, const char *name,
                                         struct client_tls *tls)
{
    int table;

    *tls = (struct client_tls){ .id = STR_NONE };
    lua_getfield(L, index, name);
    table = lua_gettop(L);
    if (lua_istable(L, table))
        *tls = (struct client_tls){
            .id         = lfield_str(L, table, "id"),
            .name       = lfield_str(L, table, "name"),
            .trusts_all = lfield_bool(L, table, "trusts_all"),
            .offers_h2  = lfield_bool(L, table, "offers_h2"),
            .is_bare    = lfield_bool(L, table, "is_bare"),
            .alpn       = lfield_str(L, table, "alpn"),
            .ca         = lfield_str(L, table, "ca"),
            .cert       = lfield_str(L, table, "cert"),
            .key        = lfield_str(L, table, "key"),
            .pins       = lfield_str(L, table, "pins"),
        };
    lua_pop(L, 1);
    return tls->id.at ? tls : NULL;
}

void lfetch_read_spec(lua_State *L, int index, struct client_call *call, struct client_tls *tls,
                      size_t *limit)
{
    luaL_checktype(L, index, LUA_TTABLE);
    call->target = (struct client_target){
        .key        = lfield_str(L, index, "key"),
        .host       = lfield_str(L, index, "host"),
        .port       = (uint16_t)field_u64(L, index, "port"),
        .path       = lfield_str(L, index, "path").at,
        .connect_ms = field_u64(L, index, "connect_ms"),
        .fresh      = lfield_bool(L, index, "fresh"),
        .is_h2      = lfield_bool(L, index, "is_h2"),
        .tunnel     = lfield_str(L, index, "tunnel"),
        .tls        = lfetch_read_tls(L, index, "tls", &tls[0]),
        .proxy_tls  = lfetch_read_tls(L, index, "proxy_tls", &tls[1]),
    };
    call->head          = lfield_str(L, index, "head");
    call->answers_head  = lfield_bool(L, index, "answers_head");
    call->decodes       = lfield_bool(L, index, "decodes");
    call->total_ms      = field_u64(L, index, "total_ms");
    call->paces         = lfield_bool(L, index, "paces");
    call->first_byte_ms = field_u64(L, index, "first_byte_ms");
    *limit              = (size_t)field_u64(L, index, "limit");
    read_body(L, index, call);
    if (!is_sound_head(call->head, field_u64(L, index, "fields")))
        luaL_error(L, "the request's head is not what HTTP allows");
}
