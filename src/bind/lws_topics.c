#include "bind/lws_topics.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lbus.h"
#include "bind/lerror.h"
#include "bind/ljson.h"
#include "bind/lmarshal.h"
#include "bind/lstr.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "data/bus.h"
#include "vm/vm.h"

enum { TEXT_BYTES_MAX = 4 * BUS_BYTES_MAX }; /* of a message as JSON */

/* One socket in one topic. */
struct lws_seat {
    struct bus_sub sub;
    struct list    of_socket;
    struct lws    *socket;
};

/* --- what comes ------------------------------------------------------------------------------------ */

/* What a message becomes; made in some VM of those that hear it. */
struct making {
    struct ws_shared *shared;
    struct str        bytes; /* as the bus carries them */
    struct ws_frame  *frame; /* NULL: it cannot be sent */
};

/* Before its VM may free TEXT. */
static void make_of_text(struct making *making, struct str text)
{
    int rc = ws_frame_new(&making->frame, making->shared, WS_TEXT, text);

    if (rc == WS_NOT_TEXT)
        rc = ws_frame_new(&making->frame, making->shared, WS_BINARY, text);
    if (rc != 0)
        making->frame = NULL;
}

static void make_of_json(lua_State *L, struct making *making)
{
    struct buf text;

    buf_init(&text, TEXT_BYTES_MAX);
    if (ljson_encode(L, -1, &text, 0) == LJSON_OK)
        make_of_text(making, buf_str(&text));
    buf_fini(&text);
}

/* Bytes that srv has not written are a string (bind/lbus.c). */
static void make_frame(lua_State *L, void *arg)
{
    struct making *making = arg;

    if (!lmarshal_push(L, making->bytes))
        lstr_push(L, making->bytes);
    if (lua_type(L, -1) == LUA_TSTRING)
        make_of_text(making, lstr_at(L, -1));
    else
        make_of_json(L, making);
}

static struct ws_frame *make_for(const struct lws *socket, const struct bus_message *message)
{
    struct making making = { socket->worker->shared, bus_message_bytes(message), NULL };
    struct err    err    = { 0 };
    struct str    topic  = bus_message_topic(message);

    if (vm_protect(socket->vm, make_frame, &making, &err) != 0 || !making.frame)
        log_warn("message for sockets lost", "topic=%.*s reason=%s", STR_ARG(topic),
                 err.text[0] ? err.text : "it has no form as text");
    return making.frame;
}

/* The bus hands a message to one socket after the other: all send the same frame. */
static void forget_made(struct lws_worker *worker)
{
    if (worker->made_of)
        bus_message_let_go(worker->made_of);
    ws_frame_free(worker->made);
    worker->made_of = NULL;
    worker->made    = NULL;
}

static void on_turn_end(struct later *later)
{
    forget_made(container_of(later, struct lws_worker, forget));
}

/* NULL: it cannot be sent. */
static struct ws_frame *frame_of(const struct lws *socket, struct bus_message *message)
{
    struct lws_worker *worker = socket->worker;

    if (worker->made_of != message) {
        forget_made(worker);
        worker->made    = make_for(socket, message);
        worker->made_of = bus_message_keep(message);
        loop_later(worker->loop, &worker->forget);
    }
    return worker->made;
}

static void lose(struct lws *socket, unsigned count)
{
    socket->worker->dropped += count;
    if (socket->rules->closes_when_full)
        lws_talk_close(socket, WS_CODE_TRY_LATER, STR("too slow"));
}

static void on_message(struct bus_sub *sub, struct bus_message *message)
{
    struct lws      *socket = container_of(sub, struct lws_seat, sub)->socket;
    struct ws_frame *frame;

    if (bus_message_from(message) == socket->serial)
        return;
    frame = frame_of(socket, message);
    if (frame && ws_send_frame(socket->ws, frame) == WS_WAIT)
        lose(socket, 1);
}

static void on_lost(struct bus_sub *sub, unsigned count)
{
    lose(container_of(sub, struct lws_seat, sub)->socket, count);
}

/* --- seats ------------------------------------------------------------------------------------------ */

static struct lws_seat *find_seat(const struct lws *socket, struct str topic)
{
    list_each(node, &socket->topics)
    {
        struct lws_seat *seat = container_of(node, struct lws_seat, of_socket);

        if (str_is(bus_sub_topic(&seat->sub), topic))
            return seat;
    }
    return NULL;
}

static int take_seat(struct lws *socket, struct str topic, struct err *err)
{
    struct lws_seat *seat = malloc(sizeof(*seat));
    int              rc;

    if (!seat)
        return err_set(err, ERR_MEMORY, "no memory for a subscription");
    *seat = (struct lws_seat){ .sub    = { .on_message = on_message, .on_lost = on_lost },
                               .socket = socket };
    rc    = bus_subscribe(socket->worker->port, &seat->sub, topic, err);
    if (rc != 0) {
        free(seat);
        return rc;
    }
    list_append(&socket->topics, &seat->of_socket);
    socket->topic_count++;
    return 0;
}

static void leave(struct lws_seat *seat)
{
    seat->socket->topic_count--;
    bus_unsubscribe(&seat->sub);
    list_remove(&seat->of_socket);
    free(seat);
}

void lws_topics_leave_all(struct lws *socket)
{
    list_each_safe(node, &socket->topics) leave(container_of(node, struct lws_seat, of_socket));
}

void lws_topics_open(struct lws_worker *worker)
{
    later_init(&worker->forget, on_turn_end);
}

void lws_topics_close(struct lws_worker *worker)
{
    later_cancel(&worker->forget);
    forget_made(worker);
}

/* --- for Lua ---------------------------------------------------------------------------------------- */

/* subscribe(ws, topic) -> true | nil, err */
static int topics_subscribe(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);
    struct str  topic  = lbus_check_topic(L, 2, "ws:subscribe");
    struct err  err;

    if (!socket->ws)
        return lerror_nil(L, "closed", "the socket is closed");
    if (!socket->worker->port)
        return lerror_nil(L, "unavailable", "no bus is lent to this VM");
    if (find_seat(socket, topic)) {
        lua_pushboolean(L, true);
        return 1;
    }
    if (socket->topic_count >= LWS_TOPICS_MAX)
        return lerror_nil(L, "too_large", "a socket subscribes to at most %d topics",
                          LWS_TOPICS_MAX);
    if (take_seat(socket, topic, &err) != 0)
        return lerror_nil_err(L, NULL, &err);
    lua_pushboolean(L, true);
    return 1;
}

/* unsubscribe(ws, topic) */
static int topics_unsubscribe(lua_State *L)
{
    struct lws      *socket = lws_check(L, 1);
    struct lws_seat *seat   = find_seat(socket, lbus_check_topic(L, 2, "ws:unsubscribe"));

    if (seat)
        leave(seat);
    return 0;
}

/* serial(ws) -> number: who publishes, for publish_from() of srv.core.bus */
static int topics_serial(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)lws_check(L, 1)->serial);
    return 1;
}

void lws_topics_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "subscribe", topics_subscribe },
                                          { "unsubscribe", topics_unsubscribe },
                                          { "serial", topics_serial },
                                          { NULL, NULL } };

    luaL_register(L, NULL, FUNCTIONS);
}
