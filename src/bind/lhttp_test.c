#include "bind/lhttp_test.h"

#include <string.h>

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "bind/ltest_port.h"
#include "bind/ltest_wire.h"
#include "bind/lws_client.h"
#include "http/exchange.h"
#include "vm/task.h"

#define STREAM_METATABLE "srv.core.TestStream"

static void push_pieces(lua_State *L, const struct test_wire *wire)
{
    const char *at    = wire->answer.at;
    size_t      count = wire->pieces.len / sizeof(size_t);

    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        size_t len;

        memcpy(&len, wire->pieces.at + i * sizeof(len), sizeof(len));
        lua_pushlstring(L, at, len);
        lua_rawseti(L, -2, (int)i + 1);
        at += len;
    }
}

static void push_interim(lua_State *L, const struct buf *interim)
{
    size_t count = interim->len / sizeof(unsigned);

    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        unsigned status;

        memcpy(&status, interim->at + i * sizeof(status), sizeof(status));
        lua_pushinteger(L, (lua_Integer)status);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static int push_answer(lua_State *L, void *op)
{
    struct test_wire *wire = op;

    lua_createtable(L, 0, 6);
    lua_pushinteger(L, (lua_Integer)wire->status);
    lua_setfield(L, -2, "status");
    ltest_wire_push_fields(L, wire);
    lua_setfield(L, -2, "fields");
    lua_pushlstring(L, wire->answer.at ? wire->answer.at : "", wire->answer.len);
    lua_setfield(L, -2, "body");
    push_pieces(L, wire);
    lua_setfield(L, -2, "pieces");
    push_interim(L, &wire->interim);
    lua_setfield(L, -2, "interim");
    lua_pushboolean(L, wire->cut);
    lua_setfield(L, -2, "cut");
    ltest_wire_free(wire);
    return 1;
}

/* Whoever waits has gone: to the app that is a client that leaves. */
static void disarm(void *op)
{
    ltest_wire_leave(op);
}

/* test_request(site, request) -> { status, fields, body, pieces, interim, cut }; the request is
 * { method, target, host, headers, body, ip, body_limit } */
static int test_request(lua_State *L)
{
    struct test_wire *wire = ltest_wire_new(L);

    wire->waiter = task_current(L);
    return task_wait(L, wire, disarm, push_answer);
}

/* --- an answer that is read as it comes --------------------------------------------------------- */

struct lstream_test {
    struct test_wire *wire; /* NULL: closed */
};

static struct lstream_test *check_stream(lua_State *L)
{
    return luaL_checkudata(L, 1, STREAM_METATABLE);
}

/* test_open(site, request) -> stream */
static int test_open(lua_State *L)
{
    struct lstream_test *stream;
    struct test_wire    *wire;

    lua_settop(L, 2);
    stream        = lclass_new(L, STREAM_METATABLE, sizeof(*stream));
    wire          = ltest_wire_new(L);
    wire->streams = true;
    stream->wire  = wire;
    return 1;
}

static void stop_waiting(void *op)
{
    struct lstream_test *stream = op;

    if (stream->wire)
        stream->wire->waiter = NULL;
}

/* Ends a lua_CFunction. */
static int wait_for_more(lua_State *L, struct lstream_test *stream, task_push_fn push)
{
    if (stream->wire->waiter)
        return lerror_misuse(L, "srv.test: another task reads this answer");
    stream->wire->waiter = task_current(L);
    return task_wait_for(L, stream, stop_waiting, push, ltask_timeout_ms(L, 2), ltask_push_timeout);
}

static int push_closed(lua_State *L)
{
    return lerror_nil(L, "closed", "this end has closed the answer");
}

static bool has_head(const struct test_wire *wire)
{
    return wire->status != 0 || !wire->ex;
}

static int push_status(lua_State *L, void *op)
{
    struct lstream_test *stream = op;

    if (!stream->wire)
        return push_closed(L);
    lua_pushinteger(L, (lua_Integer)stream->wire->status);
    ltest_wire_push_fields(L, stream->wire);
    stop_waiting(stream);
    return 2;
}

/* stream:head([seconds]) -> status, fields | nil, err */
static int stream_head(lua_State *L)
{
    struct lstream_test *stream = check_stream(L);

    if (!stream->wire || has_head(stream->wire))
        return push_status(L, stream);
    return wait_for_more(L, stream, push_status);
}

static bool has_news(const struct test_wire *wire)
{
    size_t len;

    return !wire->ex || ltest_wire_pieces(wire, &len) > 0;
}

static int push_piece(lua_State *L, void *op)
{
    struct lstream_test *stream = op;
    struct test_wire    *wire   = stream->wire;
    size_t               len;

    if (!wire)
        return push_closed(L);
    if (ltest_wire_pieces(wire, &len)) {
        lua_pushlstring(L, wire->answer.at, len);
        stop_waiting(stream);
        ltest_wire_drop_piece(wire);
        return 1;
    }
    if (!wire->ex) {
        int count = wire->cut ? lerror_nil(L, "closed", "the answer breaks off") : 0;

        stop_waiting(stream);
        return count;
    }
    stop_waiting(stream); /* the head alone has come */
    lua_pushliteral(L, "");
    return 1;
}

/* stream:piece([seconds]) -> piece; "": look again; nothing: the end | nil, err */
static int stream_piece(lua_State *L)
{
    struct lstream_test *stream = check_stream(L);

    if (!stream->wire || has_news(stream->wire))
        return push_piece(L, stream);
    return wait_for_more(L, stream, push_piece);
}

/* stream:websocket(rules, ask) -> ws | nil, err: what the answer has switched to */
static int stream_websocket(lua_State *L)
{
    struct lstream_test *stream = check_stream(L);
    void                *client;

    lua_settop(L, 3);
    if (!stream->wire || !stream->wire->channel)
        return push_closed(L);
    client = lws_client_new(L, 2, 3);
    return lws_client_open(L, client, ltest_wire_take_channel(stream->wire));
}

/* stream:close(): to the app, the client leaves. Idempotent; whoever waits gets `closed` */
static int stream_close(lua_State *L)
{
    struct lstream_test *stream = check_stream(L);
    struct test_wire    *wire   = stream->wire;

    if (!wire)
        return 0;
    stream->wire = NULL;
    if (wire->waiter)
        task_wake(wire->waiter);
    ltest_wire_leave(wire);
    return 0;
}

void lhttp_test_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "head", stream_head },   { "piece", stream_piece }, { "websocket", stream_websocket },
        { "close", stream_close }, { "__gc", stream_close },  { NULL, NULL }
    };

    lclass_add(L, STREAM_METATABLE, METHODS);
    lua_pushcfunction(L, test_request);
    lua_setfield(L, -2, "test_request");
    lua_pushcfunction(L, test_open);
    lua_setfield(L, -2, "test_open");
    ltest_port_register(L);
}
