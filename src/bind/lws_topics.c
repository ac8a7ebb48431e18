#include "bind/lws_topics.h"

#include <assert.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lerror.h"
#include "bind/ljson.h"
#include "bind/lmarshal.h"
#include "bind/lstr.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "data/bus.h"
#include "vm/vm.h"

enum { TEXT_BYTES_MAX = 4 * BUS_BYTES_MAX }; /* of a message as JSON */

/* One topic of one worker. */
struct lws_topic {
    struct bus_sub     sub;
    struct lws_worker *worker;
    struct list        seats;
    size_t             len;
    char               text[];
};

/* One socket in one topic. */
struct lws_seat {
    struct list       of_topic, of_socket;
    struct lws       *socket;
    struct lws_topic *topic;
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

static struct lws_seat *seat_of(struct list *node)
{
    return container_of(node, struct lws_seat, of_topic);
}

static struct ws_frame *frame_of(const struct lws_topic *topic, const struct bus_message *message)
{
    const struct lws *socket = seat_of(topic->seats.next)->socket;
    struct making     making = { topic->worker->shared, bus_message_bytes(message), NULL };
    struct err        err    = { 0 };

    if (vm_protect(socket->vm, make_frame, &making, &err) != 0 || !making.frame)
        log_warn("message for sockets lost", "topic=%.*s reason=%s", (int)topic->len, topic->text,
                 err.text[0] ? err.text : "it has no form as text");
    return making.frame;
}

static void lose(struct lws *socket, unsigned count)
{
    socket->worker->dropped += count;
    if (socket->rules->closes_when_full)
        lws_talk_close(socket, WS_CODE_TRY_LATER, STR("too slow"));
}

static void on_message(struct bus_sub *sub, struct bus_message *message)
{
    struct lws_topic *topic = container_of(sub, struct lws_topic, sub);
    struct ws_frame  *frame = frame_of(topic, message);
    uint64_t          from  = bus_message_from(message);

    if (!frame)
        return;
    list_each(node, &topic->seats)
    {
        struct lws *socket = seat_of(node)->socket;

        if (socket->serial != from && ws_send_frame(socket->ws, frame) == WS_WAIT)
            lose(socket, 1);
    }
    ws_frame_free(frame);
}

static void on_lost(struct bus_sub *sub, unsigned count)
{
    struct lws_topic *topic = container_of(sub, struct lws_topic, sub);

    list_each(node, &topic->seats) lose(seat_of(node)->socket, count);
}

/* --- topics ---------------------------------------------------------------------------------------- */

static struct lws_topic *new_topic(struct lws_worker *worker, struct str text, struct err *err)
{
    struct lws_topic *topic = malloc(sizeof(*topic) + text.len);

    if (!topic) {
        err_set(err, ERR_MEMORY, "no memory for a topic");
        return NULL;
    }
    *topic = (struct lws_topic){ .sub    = { .on_message = on_message, .on_lost = on_lost },
                                 .worker = worker,
                                 .len    = text.len };
    memcpy(topic->text, text.at, text.len);
    list_init(&topic->seats);
    if (bus_subscribe(worker->port, &topic->sub, text, err) != 0) {
        free(topic);
        return NULL;
    }
    if (map_put(&worker->topics, str_make(topic->text, topic->len), topic, NULL))
        return topic;
    bus_unsubscribe(&topic->sub);
    free(topic);
    err_set(err, ERR_MEMORY, "no memory for a topic");
    return NULL;
}

static void drop_if_empty(struct lws_topic *topic)
{
    if (!list_is_empty(&topic->seats))
        return;
    bus_unsubscribe(&topic->sub);
    map_remove(&topic->worker->topics, str_make(topic->text, topic->len));
    free(topic);
}

static struct lws_seat *find_seat(const struct lws *socket, struct str text)
{
    list_each(node, &socket->topics)
    {
        struct lws_seat *seat = container_of(node, struct lws_seat, of_socket);

        if (str_is(str_make(seat->topic->text, seat->topic->len), text))
            return seat;
    }
    return NULL;
}

static int take_seat(struct lws *socket, struct str text, struct err *err)
{
    struct lws_topic *topic = map_get(&socket->worker->topics, text);
    struct lws_seat  *seat;

    if (!topic)
        topic = new_topic(socket->worker, text, err);
    if (!topic)
        return err->code;
    seat = malloc(sizeof(*seat));
    if (!seat) {
        drop_if_empty(topic);
        return err_set(err, ERR_MEMORY, "no memory for a subscription");
    }
    *seat = (struct lws_seat){ .socket = socket, .topic = topic };
    list_append(&topic->seats, &seat->of_topic);
    list_append(&socket->topics, &seat->of_socket);
    socket->topic_count++;
    return 0;
}

static void leave(struct lws_seat *seat)
{
    struct lws_topic *topic = seat->topic;

    seat->socket->topic_count--;
    list_remove(&seat->of_topic);
    list_remove(&seat->of_socket);
    free(seat);
    drop_if_empty(topic);
}

void lws_topics_leave_all(struct lws *socket)
{
    list_each_safe(node, &socket->topics) leave(container_of(node, struct lws_seat, of_socket));
}

void lws_topics_close(struct lws_worker *worker)
{
    assert(worker->topics.count == 0);
    map_fini(&worker->topics);
}

/* --- for Lua ---------------------------------------------------------------------------------------- */

static struct str check_topic(lua_State *L, const char *where)
{
    struct str topic;

    if (lua_type(L, 2) != LUA_TSTRING)
        lerror_misuse(L, "%s: a topic is a string", where);
    topic = lstr_at(L, 2);
    if (topic.len == 0 || topic.len > BUS_TOPIC_BYTES_MAX)
        lerror_misuse(L, "%s: a topic has 1 to %d bytes", where, BUS_TOPIC_BYTES_MAX);
    return topic;
}

/* subscribe(ws, topic) -> true | nil, err */
static int topics_subscribe(lua_State *L)
{
    struct lws *socket = lws_check(L, 1);
    struct str  topic  = check_topic(L, "ws:subscribe");
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
    struct lws_seat *seat   = find_seat(socket, check_topic(L, "ws:unsubscribe"));

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
