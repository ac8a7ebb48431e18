#include "bind/lstream.h"

#include <lauxlib.h>

#include "bind/lanswer.h"
#include "bind/lcall.h"
#include "bind/lcoding.h"
#include "bind/lcoding_stream.h"
#include "bind/lerror.h"
#include "bind/lhead.h"
#include "bind/lrecord.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "vm/task.h"

/* Ends the wait's hold on the call: the chunk goes with the coroutine. */
static void disarm_write(void *op)
{
    struct lcall *call = op;

    call->writer = NULL;
    call->rest   = STR_NONE;
}

static int written(lua_State *L, struct lcall *call)
{
    if (call->gone)
        return lerror_nil(L, "closed", "the client has gone");
    lua_pushvalue(L, 1);
    return 1;
}

static int push_written(lua_State *L, void *op)
{
    return written(L, op);
}

static int wait_for_room(lua_State *L, struct lcall *call)
{
    call->writer = task_current(L);
    return task_wait(L, call, disarm_write, push_written);
}

static int no_memory(lua_State *L)
{
    return lerror_nil(L, "unavailable", "no memory to compress so much");
}

/* What was coded is in call->rest. */
static int push_coded(lua_State *L, struct lcall *call)
{
    return lanswer_push_rest(call) ? written(L, call) : wait_for_room(L, call);
}

/* The chunk is sent from the Lua string, which stands among the waiting call's arguments. */
static int write_chunk(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    struct task  *task = task_current(L);
    size_t        len;
    const char   *at = luaL_checklstring(L, 2, &len);

    if (task_is_cancelled(task))
        return task_stop(L);
    if (call->ended)
        return lerror_misuse(L, "this answer has ended: nothing more can be written");
    if (call->writer)
        return lerror_misuse(L, "another task is writing to this answer");
    if (!call->committed) {
        lrecord_note_where(call, L);
        lanswer_commit(call);
    }
    if (call->coder)
        return lcoding_write(call, str_make(at, len), false) ? push_coded(L, call) : no_memory(L);
    if (call->announced != ANSWER_LENGTH_UNKNOWN && len > call->announced - call->ex->sent_bytes)
        return lerror_misuse(L, "the body is longer than its Content-Length");
    call->rest = str_make(at, len);
    return lanswer_push_rest(call) ? written(L, call) : wait_for_room(L, call);
}

/* end_coding(res): the end of what is coded, if it is; before finish() */
static int end_coding(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    bool          is_coded;

    if (!call->coder || call->ended)
        return 0;
    if (call->writer)
        return lerror_misuse(L, "another task is writing to this answer");
    if (!call->committed)
        lanswer_commit(call);
    is_coded = lcoding_write(call, STR(""), true);
    if (!is_coded)
        return no_memory(L);
    lcoding_drop(call);
    return push_coded(L, call);
}

/* flush(res) -> res: what was written goes out now, for the wire sends at the end of a turn */
static int push_res(lua_State *L)
{
    lua_pushvalue(L, 1);
    return 1;
}

static int push_never(lua_State *L, void *op)
{
    return 0;
}

static void disarm_nothing(void *op)
{
}

static int flush(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (!call->committed) {
        lrecord_note_where(call, L);
        lanswer_commit(call);
    }
    return task_wait_for(L, NULL, disarm_nothing, push_never, 0, push_res);
}

/* events(res): it is a stream of events now, whose client comes back when it has ended */
static int events(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    call->events = true;
    if (call->site && call->site->ends_events && call->task)
        task_cancel(call->task, "shutdown");
    return 0;
}

enum { TRAILERS_MAX = 32 };

static unsigned read_trailers(lua_State *L, int index, struct field *trailers)
{
    unsigned count = 0;

    for (int i = 1; count < TRAILERS_MAX; i++) {
        struct field *field = &trailers[count];

        lua_rawgeti(L, index, i);
        if (!lua_istable(L, -1))
            break;
        lua_rawgeti(L, -1, 1);
        field->name = lstr_at(L, -1);
        lua_rawgeti(L, -2, 2);
        field->value = lstr_at(L, -1);
        if (!field->name.at || !field->value.at || !lhead_is_sound(field->name, field->value))
            lerror_misuse(L, "a trailer has a name or a value that HTTP forbids");
        lua_pop(L, 3); /* the table at INDEX keeps both alive */
        count++;
    }
    return count;
}

/* finish(res, [{ { name, value }, ... }]): the end of a streamed body */
static int finish(lua_State *L)
{
    struct lcall *call                   = lcall_check(L, 1);
    struct field  trailers[TRAILERS_MAX] = { 0 };
    unsigned      count                  = lua_istable(L, 2) ? read_trailers(L, 2, trailers) : 0;

    if (call->ended)
        return 0;
    if (!call->committed)
        lanswer_commit(call);
    if (!lanswer_end(call, trailers, count))
        return lerror_misuse(L, "the body is shorter than its Content-Length");
    return 0;
}

/* abort(res) */
static int abort_answer(lua_State *L)
{
    lanswer_abort(lcall_check(L, 1));
    return 0;
}

void lstream_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "write", write_chunk }, { "flush", flush },        { "events", events },
        { "finish", finish },     { "abort", abort_answer }, { "end_coding", end_coding },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
