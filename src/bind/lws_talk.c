#include "bind/lws_talk.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/lerror.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "bind/lws_state.h"
#include "ws/ws_utf8.h"
#include "vm/task.h"

/* What a sender hears when it was woken, besides the closed socket's 0. */
enum { WORD_SENT = 1, WORD_NOT_TEXT, WORD_MEMORY };

struct lws *lws_check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, LWS_METATABLE);
}

static int push_closed(lua_State *L, const struct lws *socket)
{
    if (socket->closed)
        return lerror_nil(L, "closed", "the socket was closed with %d", (int)socket->code);
    return lerror_nil(L, "closed", "the socket is %s",
                      socket->ws ? "about to close" : "not open yet");
}

static bool is_over(const struct lws *socket)
{
    return !socket->ws || socket->closing || !ws_is_open(socket->ws);
}

/* --- closing ---------------------------------------------------------------------------------------- */

void lws_talk_note_end(struct lws *socket, unsigned code, struct str reason)
{
    free(socket->reason);
    socket->code       = code;
    socket->reason     = reason.len ? malloc(reason.len) : NULL;
    socket->reason_len = socket->reason ? (unsigned char)reason.len : 0;
    if (socket->reason)
        memcpy(socket->reason, reason.at, reason.len);
}

int lws_talk_push_end(lua_State *L, const struct lws *socket)
{
    lua_pushinteger(L, (lua_Integer)socket->code);
    lua_pushlstring(L, socket->reason ? socket->reason : "", socket->reason_len);
    return 2;
}

void lws_talk_close(struct lws *socket, unsigned code, struct str reason)
{
    if (!socket->ws || socket->closing)
        return;
    socket->closing = true;
    lws_talk_note_end(socket, code, reason);
    lws_talk_forget(socket);
    lws_talk_over(socket);
    ws_close(socket->ws, code, reason);
}

void lws_talk_closed(struct lws *socket)
{
    lws_talk_over(socket);
    waitq_wake_all(&socket->enders);
}

static void wake_reader(struct lws *socket)
{
    if (waitq_is_empty(&socket->readers))
        return;
    socket->promised = true;
    waitq_wake_all(&socket->readers);
}

void lws_talk_over(struct lws *socket)
{
    waitq_wake_all(&socket->senders);
    wake_reader(socket);
}

/* close(ws, code, reason): what was sent goes out before it */
static int talk_close(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);
    lua_Number  code   = luaL_checknumber(L, 2);
    struct str  reason = lstr_opt(L, 3);

    if (code != (unsigned)code || !ws_code_may_be_sent((unsigned)code))
        return lerror_misuse(L, "ws:close: a code is one of 1000-1003, 1007-1014 and 3000-4999");
    if (reason.len > WS_REASON_BYTES_MAX)
        return lerror_misuse(L, "ws:close: a reason has at most %d bytes", WS_REASON_BYTES_MAX);
    if (!ws_utf8_is_text(reason))
        return lerror_misuse(L, "ws:close: a reason is UTF-8");
    lws_talk_close(socket, (unsigned)code, reason);
    return 0;
}

/* --- sending ---------------------------------------------------------------------------------------- */

static const char NOT_TEXT[] = "ws:send: this is no UTF-8: send it as \"binary\"";

static int push_no_memory(lua_State *L)
{
    return lerror_nil(L, "unavailable", "no memory for a message");
}

static int push_sent(lua_State *L, void *op)
{
    struct waiter *waiter = op;
    struct lws    *socket = waiter->owner;

    switch (waiter->word) {
    case WORD_SENT: lua_pushboolean(L, true); return 1;
    case WORD_NOT_TEXT: return lerror_nil(L, "invalid", "%s", NOT_TEXT);
    case WORD_MEMORY: return push_no_memory(L);
    default: return push_closed(L, socket);
    }
}

static enum ws_kind kind_at(lua_State *L, int index)
{
    return lua_toboolean(L, index) ? WS_BINARY : WS_TEXT;
}

static int send_at(struct lws *socket, lua_State *L)
{
    struct str data = lstr_at(L, 2);

    return ws_send(socket->ws, kind_at(L, 3), data);
}

static int wait_for_room(lua_State *L, struct lws *socket)
{
    return waitq_wait(L, &socket->senders, push_sent, UINT64_MAX, NULL, NULL, socket);
}

static int refuse_slow(lua_State *L, struct lws *socket)
{
    lws_talk_close(socket, WS_CODE_TRY_LATER, STR("too slow"));
    return push_closed(L, socket);
}

/* send(ws, bytes, is_binary) -> true | nil, err. Whole messages, in the order of the calls. */
static int talk_send(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);
    int         rc     = WS_WAIT;

    lstr_check(L, 2);
    lua_settop(L, 3);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (is_over(socket))
        return push_closed(L, socket);
    if (waitq_is_empty(&socket->senders))
        rc = send_at(socket, L);
    switch (rc) {
    case 0: lua_pushboolean(L, true); return 1;
    case WS_WAIT: break;
    case WS_NOT_TEXT: return lerror_misuse(L, "%s", NOT_TEXT);
    case WS_MEMORY: return push_no_memory(L);
    default: return push_closed(L, socket);
    }
    return socket->rules->closes_when_full ? refuse_slow(L, socket) : wait_for_room(L, socket);
}

static int word_of(int rc)
{
    switch (rc) {
    case 0: return WORD_SENT;
    case WS_NOT_TEXT: return WORD_NOT_TEXT;
    case WS_MEMORY: return WORD_MEMORY;
    default: return 0;
    }
}

/* The bytes of each stand on the stack of whoever waits: they are taken here, in order, and the wait ends
 * with what came of it. */
void lws_talk_room(struct lws *socket)
{
    struct waiter *waiter;

    while ((waiter = waitq_first(&socket->senders)) && socket->ws) {
        int rc = send_at(socket, waiter->L);

        if (rc == WS_WAIT)
            return;
        waiter->word = word_of(rc);
        waitq_wake(waiter);
    }
}

/* --- receiving --------------------------------------------------------------------------------------- */

void lws_talk_forget(struct lws *socket)
{
    free(socket->kept);
    socket->kept = NULL;
}

int lws_talk_push_kept(lua_State *L, struct lws *socket)
{
    lua_pushlstring(L, socket->kept->at, socket->kept->len);
    lua_pushstring(L, socket->kept->kind == WS_TEXT ? "text" : "binary");
    lws_talk_forget(socket);
    return 2;
}

static int push_received(lua_State *L, struct lws *socket)
{
    if (!socket->kept)
        return push_closed(L, socket);
    lws_talk_push_kept(L, socket);
    if (socket->ws)
        ws_next(socket->ws);
    return 2;
}

static int push_promised(lua_State *L, void *op)
{
    struct waiter *waiter = op;
    struct lws    *socket = waiter->owner;
    int            count  = push_received(L, socket);

    socket->promised = false;
    return count;
}

static void forget_promise(struct waiter *waiter)
{
    struct lws *socket = waiter->owner;

    socket->promised = false;
}

/* receive(ws, [seconds]) -> message, "text" | "binary"; nil, err */
static int talk_receive(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);

    lua_settop(L, 2);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (socket->rules->is_table)
        return lerror_misuse(L,
                             "websocket: what comes here is for the function `message` of app:ws");
    if (socket->promised || !waitq_is_empty(&socket->readers))
        return lerror_misuse(L, "websocket: another task waits for its messages");
    if (socket->kept || is_over(socket))
        return push_received(L, socket);
    return waitq_wait(L, &socket->readers, push_promised, ltask_timeout_ms(L, 2),
                      ltask_push_timeout, forget_promise, socket);
}

void lws_talk_message(struct lws *socket)
{
    wake_reader(socket);
}

static int push_true(lua_State *L, void *op)
{
    lua_pushboolean(L, true);
    return 1;
}

/* wait_closed(ws, [seconds]) -> true | nil, err: it is closed */
static int talk_wait_closed(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);

    lua_settop(L, 2);
    if (socket->closed)
        return push_true(L, NULL);
    return waitq_wait(L, &socket->enders, push_true, ltask_timeout_ms(L, 2), ltask_push_timeout,
                      NULL, socket);
}

/* --- looking ----------------------------------------------------------------------------------------- */

/* state(ws) -> "connecting" | "open" | "closing" | "closed" */
static int talk_state(lua_State *L)
{
    const struct lws *socket = lws_check(L, 1);

    if (socket->closed)
        lua_pushliteral(L, "closed");
    else if (!socket->ws)
        lua_pushliteral(L, "connecting");
    else
        lua_pushstring(L, is_over(socket) ? "closing" : "open");
    return 1;
}

/* closed(ws) -> code, reason | nil: it is open, or the peer has only begun to close. Our own code is there at once */
static int talk_closed(lua_State *L)
{
    const struct lws *socket = lws_check(L, 1);

    if (!socket->closed && !socket->closing)
        return 0;
    return lws_talk_push_end(L, socket);
}

/* pending(ws) -> bytes that wait to be sent */
static int talk_pending(lua_State *L)
{
    const struct lws *socket = lws_check(L, 1);

    lua_pushnumber(L, socket->ws ? (lua_Number)ws_pending(socket->ws) : 0);
    return 1;
}

/* protocol(ws) -> string | nil */
static int talk_protocol(lua_State *L)
{
    const struct lws *socket = lws_check(L, 1);

    if (socket->protocol < 0)
        return 0;
    return lstr_push(L, socket->rules->protocols[socket->protocol]);
}

void lws_talk_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "send", talk_send },
        { "receive", talk_receive },
        { "close", talk_close },
        { "status", talk_state },
        { "closed", talk_closed },
        { "pending", talk_pending },
        { "wait_closed", talk_wait_closed },
        { "protocol", talk_protocol },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
