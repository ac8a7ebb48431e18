#include "bind/lws_socket.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/log.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lstr.h"
#include "bind/lws_head.h"
#include "bind/lws_rules.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "bind/lws_topics.h"
#include "http/channel.h"
#include "vm/sched.h"
#include "vm/task.h"

enum {
    LEAVE_MS = 30000,  /* for a linear handler after the end of its socket, where it has no limit */
    WORKER_SHIFT = 40, /* in serials, which are whole numbers to Lua too */
};

static void go_on(struct lws *socket);

/* --- the end ---------------------------------------------------------------------------------------- */

/* It is closed, and nobody handles it any more: the collector may have it. */
static void finish(struct lws *socket)
{
    lws_talk_forget(socket);
    lws_socket_drop(socket);
    if (socket->held)
        task_unhold(socket->held);
    else
        env_guest_leave(socket->vm->env);
}

/* --- tasks ------------------------------------------------------------------------------------------- */

static int ref_of(const struct lws *socket)
{
    switch ((enum lws_event)socket->event) {
    case LWS_OPEN: return socket->rules->open_ref;
    case LWS_MESSAGE: return socket->rules->message_ref;
    case LWS_CLOSE: break;
    }
    return socket->rules->close_ref;
}

/* Pushes what the handler of the event gets besides the socket. */
static int push_event(lua_State *L, struct lws *socket)
{
    if (socket->event == LWS_MESSAGE)
        return lws_talk_push_kept(L, socket);
    if (socket->event == LWS_OPEN)
        return 0;
    return lws_talk_push_end(L, socket);
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    struct lws *socket = arg;

    socket->task = task;
    lua_rawgeti(co, LUA_REGISTRYINDEX, ref_of(socket));
    lua_rawgeti(co, LUA_REGISTRYINDEX, socket->self_ref);
    return 1 + push_event(co, socket);
}

static void report(struct lws *socket, struct task *task, lua_State *co)
{
    task_push_failure(co, task);
    log_error("socket failed", "route=%s reqId=%.*s error=%s", socket->label,
              STR_ARG(lws_head_id(socket->head)), lua_tostring(co, -1));
}

/* An end that the app did not choose. */
static void close_failed(struct lws *socket, struct task *task, enum task_end how, lua_State *co)
{
    if (how == TASK_RAISED)
        report(socket, task, co);
    else if (!socket->closed)
        log_warn("socket cancelled", "route=%s reason=%s reqId=%.*s", socket->label,
                 task_reason(task), STR_ARG(lws_head_id(socket->head)));
    lws_talk_close(socket, WS_CODE_INTERNAL, STR(""));
}

static void on_task_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct lws *socket = arg;

    socket->task    = NULL;
    socket->handled = false;
    if (how != TASK_RETURNED)
        close_failed(socket, task, how, co);
    else if (!socket->rules->is_table)
        lws_talk_close(socket, WS_CODE_NORMAL, STR(""));
    if (!socket->closed && socket->event == LWS_MESSAGE)
        ws_next(socket->ws);
    go_on(socket);
}

static void start(struct lws *socket, enum lws_event event, uint64_t limit_ms)
{
    socket->event   = event;
    socket->handled = true;
    task_start(socket->vm, &(struct task_spec){ .prepare     = prepare,
                                                .on_end      = on_task_end,
                                                .arg         = socket,
                                                .label       = socket->label,
                                                .deadline_ms = limit_ms });
}

struct str lws_socket_request_id(lua_State *L)
{
    struct task *running = sched_running(env_of(L)->sched);
    struct task *root    = running ? task_root(running) : NULL;

    if (!root || !task_is_of(root, on_task_end))
        return STR_NONE;
    return lws_head_id(((struct lws *)task_arg(root))->head);
}

static bool has_event(const struct lws *socket, enum lws_event *event)
{
    *event = LWS_MESSAGE;
    if (socket->kept && !socket->closing)
        return true;
    *event = LWS_CLOSE;
    return socket->closed && !socket->told && socket->rules->close_ref != LUA_NOREF;
}

/* The next event, if there is one and nobody is at work; or the end. */
static void go_on(struct lws *socket)
{
    enum lws_event event;

    if (socket->handled || socket->self_ref == LUA_NOREF)
        return;
    if (socket->rules->is_table && has_event(socket, &event)) {
        socket->told |= event == LWS_CLOSE;
        start(socket, event, socket->timeout_ms);
    } else if (socket->closed) {
        finish(socket);
    }
}

void lws_socket_start(struct lws *socket)
{
    if (socket->rules->open_ref != LUA_NOREF)
        start(socket, LWS_OPEN, socket->rules->is_table ? socket->timeout_ms : 0);
}

/* --- what comes -------------------------------------------------------------------------------------- */

static bool keep_message(struct lws *socket, enum ws_kind kind, struct str data)
{
    struct lws_message *kept = malloc(sizeof(*kept) + data.len);

    if (!kept)
        return false;
    kept->kind = kind;
    kept->len  = data.len;
    if (data.len)
        memcpy(kept->at, data.at, data.len);
    socket->kept = kept;
    return true;
}

static bool is_wanted(const struct lws *socket)
{
    if (socket->closing)
        return false;
    return !socket->rules->is_table || socket->rules->message_ref != LUA_NOREF;
}

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct lws *socket = ws_arg(ws);

    if (!is_wanted(socket))
        ws_next(ws);
    else if (!keep_message(socket, kind, data))
        lws_talk_close(socket, WS_CODE_TRY_LATER, STR("no memory"));
    else if (socket->rules->is_table)
        go_on(socket);
    else
        lws_talk_message(socket);
}

static void on_room(struct ws *ws)
{
    lws_talk_room(ws_arg(ws));
}

/* From here on the handler has as long as a request has. */
static void limit_handler(struct lws *socket)
{
    if (socket->task && !socket->rules->is_table)
        task_set_deadline(socket->task, socket->timeout_ms ? socket->timeout_ms : LEAVE_MS);
}

static void part(struct lws *socket)
{
    lws_topics_leave_all(socket);
    list_remove(&socket->of_worker);
    socket->ws     = NULL;
    socket->closed = true;
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    struct lws *socket = ws_arg(ws);

    lws_talk_note_end(socket, code, reason);
    part(socket);
    lws_talk_closed(socket);
    limit_handler(socket);
    go_on(socket);
}

static const struct ws_user USER = {
    .on_message = on_message,
    .on_room    = on_room,
    .on_closed  = on_closed,
};

/* --- life -------------------------------------------------------------------------------------------- */

/* The VM goes; no task is left. */
static void on_cut(struct handle *handle)
{
    struct lws *socket = container_of(handle, struct lws, handle);
    struct ws  *ws     = socket->ws;

    if (ws) {
        part(socket);
        ws_abort(ws);
    }
}

struct lws *lws_socket_new(lua_State *L, size_t bytes, struct lws_rules *rules)
{
    struct lws *socket = lclass_new(L, LWS_METATABLE, bytes);

    *socket = (struct lws){ .handle   = { .cut = on_cut },
                            .worker   = env_of(L)->sockets,
                            .rules    = lws_rules_keep(rules),
                            .vm       = vm_of(L),
                            .self_ref = LUA_NOREF,
                            .protocol = -1,
                            .label    = "websocket" };
    list_init(&socket->of_worker);
    list_init(&socket->topics);
    waitq_init(&socket->readers);
    waitq_init(&socket->senders);
    waitq_init(&socket->enders);
    handle_link(&socket->handle, socket->vm);
    return socket;
}

void lws_socket_hold(struct lws *socket, lua_State *L, int index)
{
    lua_pushvalue(L, index);
    socket->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

void lws_socket_drop(struct lws *socket)
{
    luaL_unref(socket->vm->L, LUA_REGISTRYINDEX, socket->self_ref);
    socket->self_ref = LUA_NOREF;
}

bool lws_socket_open(struct lws *socket, struct channel *channel, const struct ws_options *options)
{
    struct lws_worker *worker = socket->worker;
    struct env        *env    = socket->vm->env;

    assert(socket->self_ref != LUA_NOREF);
    if (ws_open(&socket->ws, worker->shared, channel, options, &USER, socket) != 0) {
        channel_abort(channel);
        return false;
    }
    socket->serial = (uint64_t)(env->worker_id + 1) << WORKER_SHIFT | ++worker->serial;
    list_append(&worker->sockets, &socket->of_worker);
    if (!socket->held)
        env_guest_enter(env);
    return true;
}

static int socket_gc(lua_State *L)
{
    struct lws *socket = lua_touserdata(L, 1);

    handle_unlink(&socket->handle);
    assert(!socket->ws);
    lws_talk_forget(socket);
    lws_head_free(socket->head);
    if (socket->rules)
        lws_rules_let_go(socket->rules);
    free(socket->reason);
    return 0;
}

void lws_socket_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "__gc", socket_gc }, { NULL, NULL } };

    lclass_push(L, LWS_METATABLE, METHODS, 0);
    lua_setfield(L, -2, "WebSocket");
}
