#include "bind/lrecord.h"

#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/lanswer.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lhead.h"
#include "vm/trace.h"

enum { FRAMES_MAX = 8 }; /* of srv's own between an app's line and here */

/* Cheaper than text: that is made when a second answer comes. */
void lrecord_note_where(struct lcall *call, lua_State *L)
{
    lua_Debug ar;

    for (int level = 1; level < FRAMES_MAX && lua_getstack(L, level, &ar); level++) {
        if (!lua_getinfo(L, "Sl", &ar) || ar.currentline <= 0 ||
            strncmp(ar.source, "=srv/", 5) == 0)
            continue;
        call->where_file = arena_copy(&call->ex->arena, str_of(ar.short_src)).at;
        call->where_line = ar.currentline;
        return;
    }
}

const char *lrecord_push_twice(const struct lcall *call, lua_State *L)
{
    trace_push_where(L);
    if (lua_objlen(L, -1) == 0)
        lua_pushfstring(L, "the handler of %s ", lcall_label(call));
    if (call->where_file)
        return lua_pushfstring(L, "%sanswered a second time; the first answer is from %s:%d",
                               lua_tostring(L, -1), call->where_file, call->where_line);
    return lua_pushfstring(L,
                           "%sanswered a second time; the first answer is what the handler of %s "
                           "returned",
                           lua_tostring(L, -1), lcall_label(call));
}

static int raise_twice(lua_State *L, const struct lcall *call)
{
    lerror_push(L, "answered_twice", "%s", lrecord_push_twice(call, L));
    return lua_error(L);
}

/* A table of headers or a status that is wrong raises before anything is changed but the fields
 * before it. */
static struct lcall *take(lua_State *L)
{
    struct lcall       *call = lcall_check(L, 1);
    enum lcall_recorded kind = (enum lcall_recorded)luaL_checkinteger(L, 3);
    struct err          err;

    if (call->committed || (call->recorded != RECORDED_NOTHING && !lua_toboolean(L, 2)))
        raise_twice(L, call);
    if (kind == RECORDED_SOCKET)
        call->status = 0; /* it is the switch's; one that is set later answers in its place */
    if (!lua_isnoneornil(L, 5) && lhead_set_status(call, L, 5, &err) < 0)
        lerror_misuse(L, "%s", err.text);
    if (!lua_isnoneornil(L, 6)) {
        luaL_checktype(L, 6, LUA_TTABLE);
        if (lhead_set_table(call, L, 6, &err) < 0)
            lerror_misuse(L, "%s", err.text);
    }
    lanswer_close_file(call);
    lua_settop(L, 4);
    if (kind != RECORDED_EMPTY)
        lcall_keep(L, call, ANCHOR_RECORDED);
    else
        lcall_forget(L, call, ANCHOR_RECORDED);
    call->recorded = kind;
    lua_settop(L, 1);
    return call;
}

/* record(res, over, kind, value, [status], [headers]) -> res: what an app records by a method of
 * res. KIND is one of the numbers below; OVER: in place of what was recorded. */
static int record(lua_State *L)
{
    lrecord_note_where(take(L), L);
    return 1;
}

/* settle(res, over, kind, value, [status], [headers]) -> res: the same for returned values */
static int settle(lua_State *L)
{
    take(L)->where_file = NULL;
    return 1;
}

/* note_where(res) -> res: the app's line answers */
static int note_where(lua_State *L)
{
    lrecord_note_where(lcall_check(L, 1), L);
    lua_settop(L, 1);
    return 1;
}

/* recorded(res) -> value | nil, is_json */
static int recorded(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lcall_push_kept(L, call, ANCHOR_RECORDED);
    lua_pushboolean(L, call->recorded == RECORDED_JSON);
    return 2;
}

/* replace_value(res, value): the recorded JSON value in another form */
static int replace_value(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lua_settop(L, 2);
    lcall_keep(L, call, ANCHOR_RECORDED);
    return 1;
}

/* drop_answer(res) */
static int drop_answer(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (!call->committed)
        lanswer_drop(call, L);
    return 0;
}

/* stream(res) -> function | reader | nil: what is to be pumped */
static int stream(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (call->recorded != RECORDED_STREAM || call->committed)
        return 0;
    lcall_push_kept(L, call, ANCHOR_RECORDED);
    return 1;
}

static bool is_answered_call(const struct lcall *call)
{
    return call->committed || call->recorded != RECORDED_NOTHING || call->status != 0;
}

/* is_answered(res) -> boolean: a body or a status is recorded */
static int is_answered(lua_State *L)
{
    lua_pushboolean(L, is_answered_call(lcall_check(L, 1)));
    return 1;
}

/* is_ready(p) -> boolean: what is recorded can be sent without Lua */
static int is_ready(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lua_pushboolean(L, is_answered_call(call) && !call->committed &&
                           call->recorded != RECORDED_STREAM);
    return 1;
}

/* is_committed(res) -> boolean: the head is out */
static int is_committed(lua_State *L)
{
    lua_pushboolean(L, lcall_check(L, 1)->committed);
    return 1;
}

/* must_begin(res) -> boolean: the head is not out, and writing is no second answer */
static int must_begin(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (!call->committed && call->recorded != RECORDED_NOTHING)
        return raise_twice(L, call);
    lua_pushboolean(L, !call->committed);
    return 1;
}

/* wants_no_body(res) -> boolean: HEAD, or a status without a body */
static int wants_no_body(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lua_pushboolean(L, call->ex->request.method_id == ROUTE_HEAD ||
                           lanswer_has_no_body(call->status) || lhead_condition(call) != 0);
    return 1;
}

void lrecord_register(lua_State *L)
{
    static const struct {
        const char         *name;
        enum lcall_recorded kind;
    } KINDS[] = {
        { "EMPTY", RECORDED_EMPTY },   { "TEXT", RECORDED_TEXT }, { "JSON", RECORDED_JSON },
        { "STREAM", RECORDED_STREAM }, { "FILE", RECORDED_FILE }, { "SOCKET", RECORDED_SOCKET },
    };
    static const luaL_Reg FUNCTIONS[] = {
        { "record", record },
        { "settle", settle },
        { "note_where", note_where },
        { "recorded", recorded },
        { "replace_value", replace_value },
        { "drop_answer", drop_answer },
        { "stream", stream },
        { "is_answered", is_answered },
        { "is_ready", is_ready },
        { "is_committed", is_committed },
        { "must_begin", must_begin },
        { "wants_no_body", wants_no_body },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        lua_pushinteger(L, KINDS[i].kind);
        lua_setfield(L, -2, KINDS[i].name);
    }
}
