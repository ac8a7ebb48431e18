/* A call is a userdata with its struct client_call inside. It is held by the task that opens it: at
 * that task's end, however it comes, the connection is closed unless the response was read to its
 * end. One task may wait for the response and one for room to write the request's body. */
#include "bind/lfetch.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "base/rand.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfetch_fields.h"
#include "bind/lfetch_spec.h"
#include "bind/lfield.h"
#include "bind/ltask.h"
#include "client/client_call.h"
#include "client/client_tls.h"
#include "vm/task.h"
#include "vm/vm.h"

#define CALL_METATABLE "srv.fetch.Call"

enum {
    PIECE_BYTES = 64 * 1024, /* a stream's, at most */
    STEP_BYTES  = 16 * 1024, /* by which a whole body grows */
};

/* What the reader waits for. */
enum wanted { WANT_CONNECTED, WANT_HEAD, WANT_WHOLE, WANT_PIECE };

struct lfetch {
    struct client_call call;
    struct handle      handle;
    struct held        held;
    struct task       *reader, *writer; /* that wait; NULL: nobody */
    enum wanted        wanted;
    struct buf         body;  /* read, not yet Lua's */
    size_t             limit; /* bytes of a whole body */
    bool               is_open, is_too_large;
};

static struct lfetch *check_call(lua_State *L, int index)
{
    return luaL_checkudata(L, index, CALL_METATABLE);
}

/* --- the end ------------------------------------------------------------------------------------- */

static void wake(struct task **waiting)
{
    struct task *task = *waiting;

    *waiting = NULL;
    if (task)
        task_wake(task);
}

/* Other tasks than the one that held it may still wait for it. */
static void close_call(struct lfetch *fetch)
{
    fetch->is_open = false;
    task_unhold(&fetch->held);
    handle_unlink(&fetch->handle);
    client_call_close(&fetch->call);
    buf_fini(&fetch->body);
    wake(&fetch->reader);
    wake(&fetch->writer);
}

static void release(struct held *held)
{
    close_call(container_of(held, struct lfetch, held));
}

static void cut(struct handle *handle)
{
    close_call(container_of(handle, struct lfetch, handle));
}

/* call:close() */
static int lfetch_close(lua_State *L)
{
    close_call(check_call(L, 1));
    return 0;
}

/* --- what a wait is for ------------------------------------------------------------------------------- */

/* Reads on into `body`, which holds at most MAX bytes then. True: no more is wanted or to be had. */
static bool collect(struct lfetch *fetch, size_t max, size_t step)
{
    struct client_call *call = &fetch->call;

    while (fetch->body.len < max) {
        size_t  left = max - fetch->body.len, room = left < step ? left : step;
        char   *to = buf_reserve(&fetch->body, room);
        ssize_t n;

        if (!to) {
            client_call_fail(call, "busy", "no memory for the response");
            return true;
        }
        n = client_read_body(call, to, room);
        if (n == CALL_WAIT)
            return false;
        if (n <= 0)
            return true;
        fetch->body.len += (size_t)n;
    }
    return true;
}

/* One byte over the limit tells that there is more. */
static bool has_whole(struct lfetch *fetch)
{
    struct client_call *call = &fetch->call;

    if (call->fault)
        return true;
    if (!call->has_head || !collect(fetch, fetch->limit + 1, STEP_BYTES))
        return false;
    fetch->is_too_large = fetch->body.len > fetch->limit;
    return true;
}

static bool has_what_is_wanted(struct lfetch *fetch)
{
    struct client_call *call = &fetch->call;

    switch (fetch->wanted) {
    case WANT_CONNECTED: return call->connected || call->fault;
    case WANT_HEAD: return call->has_head || call->fault;
    case WANT_WHOLE: return has_whole(fetch);
    case WANT_PIECE:
        return fetch->body.len || collect(fetch, PIECE_BYTES, PIECE_BYTES) || fetch->body.len;
    }
    return true;
}

static void on_event(struct client_call *call)
{
    struct lfetch *fetch = container_of(call, struct lfetch, call);

    if (fetch->reader && has_what_is_wanted(fetch))
        wake(&fetch->reader);
    if (fetch->writer && client_write_has_room(call))
        wake(&fetch->writer);
}

/* --- results ---------------------------------------------------------------------------------------------- */

static const char *sent_word(enum call_sent sent)
{
    static const char *const WORDS[] = {
        [CALL_UNSENT] = "unsent",
        [CALL_FOR_H1] = "for_h1",
        [CALL_STALE]  = "stale",
        [CALL_SENT]   = "sent",
    };

    return WORDS[sent];
}

/* nil, err, how much was sent. The call is over. */
static int push_fault(lua_State *L, struct lfetch *fetch)
{
    const struct client_call *call = &fetch->call;

    lua_pushnil(L);
    lerror_push(L, call->fault, "%s", call->fault_text);
    lua_pushstring(L, sent_word(call->sent));
    close_call(fetch);
    return 3;
}

/* status, headers, several, length (nil: not announced, or of what was decoded), decoded */
static int push_head(lua_State *L, struct lfetch *fetch)
{
    const struct client_call *call = &fetch->call;

    lua_pushinteger(L, (lua_Integer)call->response.status);
    lfetch_push_fields(L, call->response.fields, call->response.field_count);
    if (call->response.content_length == UINT64_MAX || call->decoded)
        lua_pushnil(L);
    else
        lua_pushnumber(L, (lua_Number)call->response.content_length);
    lua_pushboolean(L, call->decoded);
    return 5;
}

static int push_trailers(lua_State *L, const struct response *response)
{
    if (!response->trailer_count) {
        lua_pushnil(L);
        return 1;
    }
    lfetch_push_fields(L, response->trailers, response->trailer_count);
    lua_pop(L, 1);
    return 1;
}

static int push_too_large(lua_State *L, struct lfetch *fetch)
{
    lerror_nil(L, "too_large", "the response's body is larger than its limit");
    lua_pushliteral(L, "sent");
    close_call(fetch);
    return 3;
}

/* ..., body, trailers; the call is over. */
static int push_whole(lua_State *L, struct lfetch *fetch)
{
    int count = push_head(L, fetch);

    lua_pushlstring(L, fetch->body.at ? fetch->body.at : "", fetch->body.len);
    count += 1 + push_trailers(L, &fetch->call.response);
    close_call(fetch);
    return count;
}

static int refuse_closed(lua_State *L)
{
    return lerror_nil(L, "closed",
                      "the response was closed: its task has ended, or close() was called");
}

static int push_opened(lua_State *L, void *op)
{
    struct lfetch *fetch = op;

    if (!fetch->is_open)
        return refuse_closed(L);
    if (fetch->call.fault)
        return push_fault(L, fetch);
    if (fetch->is_too_large)
        return push_too_large(L, fetch);
    if (fetch->wanted == WANT_WHOLE)
        return push_whole(L, fetch);
    if (fetch->wanted == WANT_CONNECTED) {
        lua_pushboolean(L, 1);
        return 1;
    }
    client_call_limit(&fetch->call, 0); /* from here on each read has its own */
    return push_head(L, fetch);
}

/* --- waiting ---------------------------------------------------------------------------------------------- */

/* Who waits for the response is not interested any more. */
static void disarm_reader(void *op)
{
    struct lfetch *fetch = op;

    fetch->reader = NULL;
    close_call(fetch);
}

/* The request stays incomplete, so the connection will not be kept; the response may still be read. */
static void disarm_writer(void *op)
{
    struct lfetch *fetch = op;

    fetch->writer = NULL;
}

static int busy(lua_State *L, const char *what)
{
    return lerror_misuse(L, "another task is %s", what);
}

/* WHAT may be there already. */
static int wait_for(lua_State *L, struct lfetch *fetch, enum wanted wanted, task_push_fn push)
{
    struct task *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    if (fetch->reader)
        return busy(L, "reading this response");
    fetch->wanted = wanted;
    if (has_what_is_wanted(fetch))
        return push(L, fetch);
    fetch->reader = task;
    return task_wait(L, fetch, disarm_reader, push);
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static const char *const WANTED[] = { "connected", "head", "whole", NULL };

/* call:open(spec, "connected") -> true | nil, err, sent
 * call:open(spec, "head") -> status, headers, several, length, decoded | nil, err, sent
 * call:open(spec, "whole") -> the same, body, trailers | nil, err, sent */
static int lfetch_open_call(lua_State *L)
{
    struct lfetch *fetch  = check_call(L, 1);
    enum wanted    wanted = (enum wanted)luaL_checkoption(L, 3, NULL, WANTED);
    struct env    *env    = env_of(L);
    struct task   *task   = task_current(L);

    struct client_tls tls[2];

    luaL_checktype(L, 2, LUA_TTABLE);
    if (task_is_cancelled(task))
        return task_stop(L);
    luaL_argcheck(L, !fetch->call.on_event, 1, "opened before");
    if (!env->client)
        return lerror_nil(L, "unavailable", "no HTTP client is lent to this VM");
    fetch->call.on_event = on_event;
    lfetch_read_spec(L, 2, &fetch->call, tls, &fetch->limit);
    lua_pushvalue(L, 2); /* keeps the body's text */
    lua_setfenv(L, 1);
    fetch->is_open = true;
    handle_link(&fetch->handle, vm_of(L));
    task_hold(task, &fetch->held);
    client_call_start(&fetch->call, env->client, env->loop, env->arenas);
    fetch->wanted = wanted;
    fetch->reader = task;
    return task_wait(L, fetch, disarm_reader, push_opened);
}

/* call:head() -> status, headers, several, length, decoded | nil, err, sent */
static int lfetch_head(lua_State *L)
{
    struct lfetch *fetch = check_call(L, 1);

    if (!fetch->is_open)
        return refuse_closed(L);
    return wait_for(L, fetch, WANT_HEAD, push_opened);
}

/* --- the response's body ---------------------------------------------------------------------------------- */

static int push_piece(lua_State *L, void *op)
{
    struct lfetch *fetch = op;
    size_t         max   = (size_t)lua_tonumber(L, 2);
    size_t         len   = fetch->body.len < max ? fetch->body.len : max;

    if (!fetch->is_open)
        return refuse_closed(L);
    if (len) {
        lua_pushlstring(L, fetch->body.at, len);
        buf_consume(&fetch->body, len);
        return 1;
    }
    if (fetch->call.fault) {
        push_fault(L, fetch);
        lua_pop(L, 1); /* how much was sent is of no interest any more */
        return 2;
    }
    push_trailers(L, &fetch->call.response);
    lua_pushnil(L);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    close_call(fetch);
    return 3;
}

static int push_late(lua_State *L)
{
    return lerror_nil(L, "timeout", "the response did not come on in time");
}

/* call:read(bytes_max, timeout) -> string | nil, nil, trailers (the end) | nil, err */
static int lfetch_read(lua_State *L)
{
    struct lfetch *fetch   = check_call(L, 1);
    struct task   *task    = task_current(L);
    uint64_t       timeout = ltask_timeout_ms(L, 3);

    luaL_argcheck(L, luaL_checknumber(L, 2) >= 1, 2, "bytes");
    if (task_is_cancelled(task))
        return task_stop(L);
    if (!fetch->is_open)
        return refuse_closed(L);
    if (fetch->reader)
        return busy(L, "reading this response");
    fetch->wanted = WANT_PIECE;
    if (has_what_is_wanted(fetch))
        return push_piece(L, fetch);
    fetch->reader = task;
    return task_wait_for(L, fetch, disarm_reader, push_piece, timeout, push_late);
}

/* --- the request's body -------------------------------------------------------------------------------------- */

/* What was done from above may be what the reader waits for: a fault. */
static void tell_reader(struct lfetch *fetch)
{
    if (fetch->reader && fetch->call.fault)
        wake(&fetch->reader);
}

/* false: the response has ended or the call has failed, so nobody wants the rest. */
static int written(lua_State *L, struct lfetch *fetch)
{
    tell_reader(fetch);
    lua_pushboolean(L, fetch->call.conn && !fetch->call.send_failed);
    return 1;
}

/* As much as there is room for; the rest stays at TASK's op. True: all of it. */
static bool write_rest(lua_State *L, struct lfetch *fetch)
{
    size_t      at    = (size_t)lua_tonumber(L, 3), len;
    const char *bytes = lua_tolstring(L, 2, &len);

    while (at < len) {
        size_t taken = client_write_body(&fetch->call, str_make(bytes + at, len - at));

        if (!taken)
            break;
        at += taken;
    }
    lua_pushnumber(L, (lua_Number)at);
    return at == len;
}

static int push_room(lua_State *L, void *op)
{
    struct lfetch *fetch = op;

    if (write_rest(L, fetch))
        return written(L, fetch);
    lua_pushboolean(L, 1);
    lua_insert(L, -2);
    return 2;
}

/* call:write(chunk, from) -> true, bytes (so many are written: come again) | boolean: more is wanted */
static int lfetch_write(lua_State *L)
{
    struct lfetch *fetch = check_call(L, 1);
    struct task   *task  = task_current(L);

    luaL_checkstring(L, 2);
    luaL_checknumber(L, 3);
    if (task_is_cancelled(task))
        return task_stop(L);
    if (!fetch->is_open)
        return refuse_closed(L);
    if (fetch->writer)
        return busy(L, "writing this request");
    lua_settop(L, 3);
    if (write_rest(L, fetch))
        return written(L, fetch);
    lua_replace(L, 3);
    fetch->writer = task;
    return task_wait(L, fetch, disarm_writer, push_room);
}

/* call:finish() -> boolean: false, it is shorter than was announced */
static int lfetch_finish(lua_State *L)
{
    struct lfetch *fetch = check_call(L, 1);

    lua_pushboolean(L, !fetch->is_open || client_write_end(&fetch->call));
    tell_reader(fetch);
    return 1;
}

/* call:fail(message): the request's body cannot be had, so whoever waits for the response hears of it */
static int lfetch_fail(lua_State *L)
{
    struct lfetch *fetch = check_call(L, 1);

    if (!fetch->is_open)
        return 0;
    client_call_fail(&fetch->call, "closed", luaL_checkstring(L, 2));
    tell_reader(fetch);
    return 0;
}

/* call() -> call */
static int new_call(lua_State *L)
{
    struct lfetch *fetch = lclass_new(L, CALL_METATABLE, sizeof(*fetch));

    fetch->handle.cut   = cut;
    fetch->held.release = release;
    list_init(&fetch->handle.link);
    list_init(&fetch->held.link);
    buf_init(&fetch->body, SIZE_MAX);
    return 1;
}

/* --- the module ------------------------------------------------------------------------------------------------ */

/* configure(total, per_origin, idle_ms) */
static int configure(lua_State *L)
{
    struct env           *env     = env_of(L);
    struct client_options options = {
        .total      = (unsigned)luaL_checkinteger(L, 1),
        .per_origin = (unsigned)luaL_checkinteger(L, 2),
        .idle_ms    = (uint64_t)luaL_checknumber(L, 3),
    };

    if (env->client)
        http_client_configure(env->client, &options);
    return 0;
}

/* stats() -> { open, idle, waiting, opened, reused } */
static int stats(lua_State *L)
{
    struct env              *env = env_of(L);
    struct http_client_stats now = { .open = 0 };

    if (env->client)
        now = http_client_stats(env->client);
    lua_createtable(L, 0, 5);
    lfield_set_number(L, "open", now.open);
    lfield_set_number(L, "idle", now.idle);
    lfield_set_number(L, "waiting", now.waiting);
    lfield_set_number(L, "opened", (lua_Number)now.opened);
    lfield_set_number(L, "reused", (lua_Number)now.reused);
    return 1;
}

/* random() -> 0 <= number < 1, other than every other's: so that a crowd that failed together does not
 * come back together */
static int random_share(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)(rand_u64() >> 11) / (lua_Number)(UINT64_C(1) << 53));
    return 1;
}

int lfetch_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "open", lfetch_open_call }, { "head", lfetch_head },     { "read", lfetch_read },
        { "write", lfetch_write },    { "finish", lfetch_finish }, { "fail", lfetch_fail },
        { "close", lfetch_close },    { "__gc", lfetch_close },    { NULL, NULL },
    };
    static const luaL_Reg FUNCTIONS[] = {
        { "call", new_call }, { "configure", configure },
        { "stats", stats },   { "random", random_share },
        { NULL, NULL },
    };

    lclass_add(L, CALL_METATABLE, METHODS);
    lua_createtable(L, 0, 4);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
