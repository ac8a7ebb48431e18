#include "bind/lbody.h"

#include <lauxlib.h>

#include "base/text.h"
#include "bind/lbody_decode.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lstr.h"
#include "vm/task.h"

static bool is_over(const struct lcall *call)
{
    return call->ex->request_state == REQUEST_ENDED || call->ex->request_state == REQUEST_BROKEN ||
           lbody_decode_fault(call);
}

enum { DECODED_BYTES = 16 * 1024 }; /* at a time */

static void collect_decoded(struct lcall *call)
{
    size_t made;

    do {
        char *to = buf_reserve(call->body, DECODED_BYTES);

        made = to ? lbody_decode(call, to, DECODED_BYTES) : 0;
        call->body->len += made;
    } while (made);
}

/* Taking makes room for more, so this goes on until nothing is there. The exchange's body_limit is
 * the bound. */
static void collect(struct lcall *call)
{
    struct str piece;

    if (!call->body)
        call->body = lcall_buf(call, SIZE_MAX);
    if (call->decoder) {
        collect_decoded(call);
        return;
    }
    while ((piece = exchange_take_body(call->ex, SIZE_MAX)).len)
        buf_add_str(call->body, piece);
}

void lbody_came(struct lcall *call)
{
    struct task *reader = call->reader;

    if (!reader)
        return;
    if (call->reads_all && !call->gone) {
        collect(call);
        if (!is_over(call))
            return;
    }
    call->reader = NULL;
    task_wake(reader);
}

static void disarm_read(void *op)
{
    struct lcall *call = op;

    call->reader = NULL;
}

static int wait_for_body(lua_State *L, struct lcall *call, bool all, task_push_fn push)
{
    if (call->reader)
        return lerror_misuse(L, "another task is reading this body");
    call->reader    = task_current(L);
    call->reads_all = all;
    return task_wait(L, call, disarm_read, push);
}

/* nil, err for what went wrong on the wire. */
static int push_decode_fault(lua_State *L, unsigned status)
{
    if (status == 413)
        lerror_nil(L, "content_too_large", "the body is over its limit once it is inflated");
    else
        lerror_nil(L, "bad_encoding", "the body is not what its Content-Encoding says");
    lua_pushinteger(L, (lua_Integer)status);
    lua_setfield(L, -2, "status");
    return 2;
}

static int push_fault(lua_State *L, const struct lcall *call)
{
    if (lbody_decode_fault(call))
        return push_decode_fault(L, lbody_decode_fault(call));
    if (call->gone && call->ex->request_state != REQUEST_BROKEN)
        return lerror_nil(L, "closed", "the client has gone");
    switch (call->ex->request_fault) {
    case 413: lerror_nil(L, "content_too_large", "the body is over its limit"); break;
    case 408: lerror_nil(L, "request_timeout", "the body did not come in time"); break;
    default: lerror_nil(L, "bad_request", "the body is malformed or cut short"); break;
    }
    lua_pushinteger(L, call->ex->request_fault ? call->ex->request_fault : 400);
    lua_setfield(L, -2, "status");
    return 2;
}

/* The bytes become one Lua string, which is kept for the next time. */
static int push_body(lua_State *L, void *op)
{
    struct lcall *call = op;

    if (call->gone || call->ex->request_state == REQUEST_BROKEN)
        return push_fault(L, call);
    if (!call->body && !call->decoder) { /* it came in one piece */
        struct str whole = exchange_take_body(call->ex, SIZE_MAX);

        lua_pushlstring(L, whole.at ? whole.at : "", whole.len);
    } else {
        collect(call);
        if (lbody_decode_fault(call))
            return push_fault(L, call);
        lua_pushlstring(L, call->body->at ? call->body->at : "", call->body->len);
        buf_fini(call->body);
    }
    lua_pushvalue(L, -1);
    lcall_keep(L, call, ANCHOR_BODY);
    return 1;
}

/* has_body(req) -> boolean */
static int has_body(lua_State *L)
{
    lua_pushboolean(L, lcall_check(L, 1)->ex->request.has_body);
    return 1;
}

/* body_state(req) -> "whole" | "streamed" | nil: how it was handed out, if it was; and its length, if
 * that was announced */
static int body_state(lua_State *L)
{
    struct lcall         *call    = lcall_check(L, 1);
    const struct request *request = &call->ex->request;

    if (call->streams_body)
        lua_pushliteral(L, "streamed");
    else if (call->anchors & 1u << ANCHOR_BODY)
        lua_pushliteral(L, "whole");
    else
        lua_pushnil(L);
    if (request->chunked)
        return 1;
    lua_pushnumber(L, (lua_Number)request->content_length);
    return 2;
}

/* read_body(req) -> string | nil, err */
static int read_body(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (call->streams_body)
        return lerror_misuse(L, "this body was handed out by req:stream(), parts() or multipart(): "
                                "it is not there any more");
    lcall_push_kept(L, call, ANCHOR_BODY);
    if (!lua_isnil(L, -1))
        return 1;
    exchange_want(call->ex);
    if (is_over(call) || call->gone)
        return push_body(L, call);
    collect(call);
    return wait_for_body(L, call, true, push_body);
}

/* decode_body(req, coding) -> boolean: it is read inflated from now on; false: no such coding */
static int decode_body(lua_State *L)
{
    struct lcall   *call = lcall_check(L, 1);
    enum codings_id id;
    bool            is_known = codings_named(lstr_check(L, 2), &id);

    if (is_known && id != CODINGS_IDENTITY && !lbody_decode_begin(call, id))
        return luaL_error(L, "not enough memory");
    lua_pushboolean(L, is_known);
    return 1;
}

/* open_stream(req): from now on the body comes in pieces only */
static int open_stream(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (call->streams_body)
        return lerror_misuse(
            L, "this body was handed out by req:stream(), parts() or multipart() before");
    if (call->anchors & 1u << ANCHOR_BODY)
        return lerror_misuse(L, "this body was read as a whole before");
    call->streams_body = true;
    exchange_want(call->ex);
    return 0;
}

/* "" when what has come makes no byte yet. */
static int push_decoded(lua_State *L, struct lcall *call)
{
    char   piece[DECODED_BYTES];
    double wanted = lua_tonumber(L, 2);
    size_t room   = wanted < DECODED_BYTES ? (size_t)wanted : DECODED_BYTES;
    size_t len    = lbody_decode(call, piece, room);

    if (!len &&
        (lbody_decode_fault(call) || call->gone || call->ex->request_state == REQUEST_BROKEN))
        return push_fault(L, call);
    if (!len && call->ex->request_state == REQUEST_ENDED)
        return 0;
    lua_pushlstring(L, piece, len);
    return 1;
}

static int push_piece(lua_State *L, void *op)
{
    struct lcall *call = op;
    struct str    piece;

    if (call->decoder)
        return push_decoded(L, call);
    piece = exchange_take_body(call->ex, (size_t)lua_tonumber(L, 2));
    if (piece.len)
        return lstr_push(L, piece);
    if (call->ex->request_state == REQUEST_ENDED && !call->gone)
        return 0;
    return push_fault(L, call);
}

/* read_some(req, bytes_max) -> string ("": again) | nil (the end) | nil, err */
static int read_some(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    luaL_checknumber(L, 2);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (exchange_untaken(call->ex) || lbody_decode_has_more(call) || is_over(call) || call->gone)
        return push_piece(L, call);
    return wait_for_body(L, call, false, push_piece);
}

/* is_utf8(text) -> boolean */
static int is_utf8(lua_State *L)
{
    struct str text;
    size_t     step = 1;

    text = lstr_check(L, 1);
    while (text.len && step) {
        step = text_utf8_len(text);
        text = str_from(text, step);
    }
    lua_pushboolean(L, text.len == 0);
    return 1;
}

void lbody_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "has_body", has_body },       { "body_state", body_state },
        { "read_body", read_body },     { "decode_body", decode_body },
        { "open_stream", open_stream }, { "read_some", read_some },
        { "is_utf8", is_utf8 },         { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
    lua_pushliteral(L, CODINGS_READ);
    lua_setfield(L, -2, "READ_CODINGS");
}
