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

static void let_go(struct lcall *call)
{
    call->writer = NULL;
    call->woken  = false;
}

/* Something may be written behind a chunk of which a part is out: it would look like its end. */
static bool is_torn(const struct lcall *call)
{
    bool ends = call->gone || (call->task && task_is_cancelled(call->task));

    return call->rest.len && !ends && (call->coder || call->ex->sent_bytes != call->written_from);
}

/* Ends the wait's hold on the call: the chunk goes with the coroutine. */
static void disarm_write(void *op)
{
    struct lcall *call = op;

    if (is_torn(call))
        lanswer_abort(call);
    call->rest = STR_NONE;
    let_go(call);
    lanswer_wake_ender(call);
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
    let_go(op);
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
    if (call->ending)
        return lerror_nil(L, "closed", "this answer is about to end: its handler has returned");
    if (call->writer)
        return lerror_misuse(L, "another task is writing to this answer");
    if (!call->committed) {
        lrecord_note_where(call, L);
        lanswer_commit(call);
    }
    call->written_from = call->ex->sent_bytes;
    if (call->coder)
        return lcoding_write(call, str_make(at, len), false) ? push_coded(L, call) : no_memory(L);
    if (call->announced != ANSWER_LENGTH_UNKNOWN && len > call->announced - call->ex->sent_bytes)
        return lerror_misuse(L, "the body is longer than its Content-Length");
    call->rest = str_make(at, len);
    return lanswer_push_rest(call) ? written(L, call) : wait_for_room(L, call);
}

static void disarm_end(void *op)
{
    struct lcall *call = op;

    call->ender = NULL;
}

static int push_nothing(lua_State *L, void *op)
{
    return 0;
}

/* end_writing(res): nobody begins to write any more, and what a child has begun is handed over */
static int end_writing(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    call->ending = true;
    if (!call->writer || call->woken)
        return 0;
    call->ender = task_current(L);
    return task_wait(L, call, disarm_end, push_nothing);
}

/* end_coding(res): the end of what is coded, if it is; behind end_writing(), before finish() */
static int end_coding(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    bool          is_coded;

    if (!call->coder || call->ended)
        return 0;
    if (!call->committed)
        lanswer_commit(call);
    call->written_from = UINT64_MAX; /* whatever is missing tears it */
    is_coded           = lcoding_write(call, STR(""), true);
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

static bool sends_no_body(const struct lcall *call)
{
    return call->ex->request.method_id == ROUTE_HEAD || lanswer_has_no_body(call->status);
}

/* events(res): it is a stream of events now, whose client comes back when it has ended. Where no body
 * follows the head there is nobody to tell: the handler, which may never end, is cancelled. */
static int events(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    call->events = true;
    if (!call->task)
        return 0;
    if (sends_no_body(call)) {
        lanswer_end(call, NULL, 0);
        task_cancel(call->task, "the request wants no events");
    } else if (call->site && call->site->ends_events) {
        task_cancel(call->task, "shutdown");
    }
    return task_is_cancelled(task_current(L)) ? task_stop(L) : 0;
}

/* announce_trailer(res, name): behind the body; the head says so, if it is not out */
static int announce_trailer(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    struct str    name = lstr_check(L, 2);

    if (!call->committed)
        lhead_note_trailer(call, name);
    return 0;
}

enum { TRAILERS_MAX = 32 }; /* also in srv/web/response.lua */

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
        { "write", write_chunk },
        { "flush", flush },
        { "events", events },
        { "announce_trailer", announce_trailer },
        { "end_writing", end_writing },
        { "end_coding", end_coding },
        { "finish", finish },
        { "abort", abort_answer },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
