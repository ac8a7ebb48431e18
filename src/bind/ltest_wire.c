#include "bind/ltest_wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lfield.h"
#include "bind/lhttp_dispatch.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "bind/ltest_channel.h"
#include "bind/ltest_tls.h"
#include "http/channel.h"
#include "http/exchange.h"
#include "vm/task.h"

enum {
    ANSWER_BYTES_MAX   = 256 * 1024 * 1024,
    BODY_PIECE_BYTES   = 64 * 1024,
    STREAM_AHEAD_BYTES = 64 * 1024, /* of an answer that is read as it comes: then it waits */
};

/* --- the wire ------------------------------------------------------------------------------------------ */

static struct test_wire *wire_of(struct exchange *ex)
{
    return ex->wire_data;
}

static void take_turn(struct test_wire *wire)
{
    loop_later(wire->ex->loop, &wire->turn);
}

/* Whoever reads the answer as it comes has something to look at. */
static void tell_reader(struct test_wire *wire)
{
    if (wire->streams && wire->waiter)
        task_wake(wire->waiter);
}

static void note_field(struct test_wire *wire, struct str name, struct str value)
{
    buf_add_str(&wire->head, name);
    buf_add_byte(&wire->head, '\0');
    buf_add_str(&wire->head, value);
    buf_add_byte(&wire->head, '\n');
}

static int wire_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    struct test_wire *wire = wire_of(ex);

    wire->status         = answer->status;
    ex->answer_status    = (unsigned short)answer->status;
    ex->answer_state     = ANSWER_BODY;
    ex->answer_head_only = ex->request.method_id == ROUTE_HEAD || answer->status == 204 ||
                           answer->status == 205 || answer->status == 304;
    if (answer->content_type.len)
        note_field(wire, STR("content-type"), answer->content_type);
    for (unsigned i = 0; i < answer->field_count; i++)
        note_field(wire, answer->fields[i].name, answer->fields[i].value);
    if (length != ANSWER_LENGTH_UNKNOWN && answer->status != 204 && answer->status != 304) {
        char text[24];
        int  len = snprintf(text, sizeof(text), "%llu", (unsigned long long)length);

        note_field(wire, STR("content-length"), str_make(text, (size_t)len));
    }
    tell_reader(wire);
    return 0;
}

static void note_piece(struct exchange *ex, const void *at, size_t len)
{
    struct test_wire *wire = wire_of(ex);

    ex->sent_bytes += len;
    if (ex->answer_head_only || len == 0)
        return;
    buf_add(&wire->answer, at, len);
    buf_add(&wire->pieces, &len, sizeof(len));
    tell_reader(wire);
}

static ssize_t wire_body(struct exchange *ex, const struct iovec *iov, int count)
{
    struct test_wire *wire  = wire_of(ex);
    ssize_t           taken = 0;

    if (wire->streams && wire->answer.len >= STREAM_AHEAD_BYTES) {
        wire->wants_room = true;
        return EXCHANGE_WAIT;
    }
    for (int i = 0; i < count; i++) {
        note_piece(ex, iov[i].iov_base, iov[i].iov_len);
        taken += (ssize_t)iov[i].iov_len;
    }
    return taken;
}

static int wire_end(struct exchange *ex, const struct field *trailers, unsigned trailer_count)
{
    struct test_wire *wire = wire_of(ex);

    for (unsigned i = 0; i < trailer_count; i++)
        note_field(wire, trailers[i].name, trailers[i].value);
    ex->answer_state = ANSWER_ENDED;
    wire->over       = true;
    take_turn(wire);
    return 0;
}

static int wire_file(struct exchange *ex, int fd, off_t offset, uint64_t len)
{
    char piece[BODY_PIECE_BYTES];

    while (len > 0) {
        ssize_t n = pread(fd, piece, len < sizeof(piece) ? (size_t)len : sizeof(piece), offset);

        if (n <= 0)
            break;
        note_piece(ex, piece, (size_t)n);
        offset += n;
        len -= (uint64_t)n;
    }
    close(fd);
    return wire_end(ex, NULL, 0);
}

static int wire_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    wire_head(ex, answer, body.len);
    note_piece(ex, body.at, body.len);
    return wire_end(ex, NULL, 0);
}

static void wire_abort(struct exchange *ex, enum gone_why why)
{
    struct test_wire *wire = wire_of(ex);

    ex->answer_state = ANSWER_ABORTED;
    wire->over = wire->cut = true;
    take_turn(wire);
}

static void wire_want(struct exchange *ex)
{
    struct test_wire *wire = wire_of(ex);

    if (ex->request.content_length > ex->body_limit) {
        ex->request_state = REQUEST_BROKEN;
        ex->request_fault = 413;
        return;
    }
    wire->wants_body = true;
    take_turn(wire);
}

static int wire_interim(struct exchange *ex, const struct answer *answer)
{
    buf_add(&wire_of(ex)->interim, &answer->status, sizeof(answer->status));
    return 0;
}

static struct channel *wire_upgrade(struct exchange *ex, struct str protocol,
                                    const struct answer *answer)
{
    struct test_wire *wire = wire_of(ex);
    struct channel   *theirs;

    if (!ltest_channel_pair(ex->loop, &theirs, &wire->channel))
        return NULL;
    wire_head(ex, answer, ANSWER_LENGTH_UNKNOWN);
    note_field(wire, STR("upgrade"), protocol);
    note_field(wire, STR("connection"), STR("Upgrade"));
    wire->status = ex->answer_status = 101;
    wire_end(ex, NULL, 0);
    return theirs;
}

struct channel *ltest_wire_take_channel(struct test_wire *wire)
{
    struct channel *channel = wire->channel;

    wire->channel = NULL;
    return channel;
}

static void wire_work_gone(struct exchange *ex)
{
    struct test_wire *wire = wire_of(ex);

    wire->let_go = true;
    take_turn(wire);
}

static const struct exchange_wire WIRE = {
    .head      = wire_head,
    .body      = wire_body,
    .file      = wire_file,
    .end       = wire_end,
    .answer    = wire_answer,
    .abort     = wire_abort,
    .want      = wire_want,
    .interim   = wire_interim,
    .upgrade   = wire_upgrade,
    .work_gone = wire_work_gone,
};

/* --- its turn in the loop ----------------------------------------------------------------------------- */

void ltest_wire_free(struct test_wire *wire)
{
    later_cancel(&wire->turn);
    if (wire->channel)
        channel_abort(wire->channel);
    buf_fini(&wire->head);
    buf_fini(&wire->answer);
    buf_fini(&wire->pieces);
    buf_fini(&wire->interim);
    free(wire);
}

/* One piece for each time it is wanted, so that what waits for a body does wait. */
static void deliver_body(struct test_wire *wire)
{
    struct exchange *ex    = wire->ex;
    struct str       piece = wire->body;

    wire->wants_body = false;
    if (piece.len > BODY_PIECE_BYTES)
        piece.len = BODY_PIECE_BYTES;
    exchange_put_body(ex, piece);
    wire->body = str_from(wire->body, piece.len);
    if (wire->body.len == 0)
        ex->request_state = REQUEST_ENDED;
    if (!ex->work)
        return;
    if (wire->body.len == 0)
        ex->work->on_body_end(ex);
    else
        ex->work->on_body(ex);
}

static void give_room(struct test_wire *wire)
{
    struct exchange *ex = wire->ex;

    wire->wants_room = false;
    if (ex->work && ex->work->on_room)
        ex->work->on_room(ex);
}

/* The answer is complete: the work is told, then whoever waits has it. */
static void end(struct test_wire *wire)
{
    struct exchange *ex = wire->ex;

    wire->over = false;
    if (wire->status == 0 && !wire->cut)
        wire->status = 500; /* the work has let go without an answer */
    if (ex->work && ex->work->on_sent)
        ex->work->on_sent(ex);
    if (ex->work && ex->work->on_gone && wire->cut)
        ex->work->on_gone(ex, GONE_ERROR);
    later_cancel(&wire->turn); /* the work may have let go just now */
    wire->ex = NULL;
    exchange_wire_let_go(ex);
    if (wire->waiter)
        task_wake(wire->waiter);
    else if (!wire->streams)
        ltest_wire_free(wire);
}

static void lose_client(struct test_wire *wire)
{
    struct exchange *ex = wire->ex;

    wire->ex = NULL;
    exchange_wire_lost(ex, GONE_CLIENT);
    ltest_wire_free(wire);
}

static void on_turn(struct later *turn)
{
    struct test_wire *wire = container_of(turn, struct test_wire, turn);

    if (!wire->dispatched) {
        wire->dispatched = true;
        lhttp_dispatch_to(wire->http, wire->site, wire->ex);
        lsite_let_go(wire->site);
    }
    if (wire->left && !wire->over)
        lose_client(wire);
    else if (wire->over || wire->let_go)
        end(wire);
    else if (wire->wants_body)
        deliver_body(wire);
    else if (wire->wants_room)
        give_room(wire);
}

/* --- making a request ------------------------------------------------------------------------------------ */

static struct str field_str(lua_State *L, int table, const char *name, struct arena *arena)
{
    struct str text = lfield_str(L, table, name);

    return text.at ? arena_copy(arena, text) : STR_NONE;
}

static struct str lower_copy(struct arena *arena, struct str name)
{
    struct str copy = arena_copy(arena, name);

    for (size_t i = 0; i < copy.len; i++)
        if (copy.at[i] >= 'A' && copy.at[i] <= 'Z')
            ((char *)copy.at)[i] |= 0x20;
    return copy;
}

/* The list of { name, value } in the table's `headers`. */
static void read_fields(lua_State *L, int table, struct exchange *ex)
{
    struct request *request = &ex->request;
    unsigned        count;

    lua_getfield(L, table, "headers");
    count           = (unsigned)lua_objlen(L, -1);
    request->fields = arena_zalloc(&ex->arena, (count + 1) * sizeof(*request->fields));
    for (unsigned i = 0; i < count; i++) {
        struct field *field = &request->fields[i];
        struct str    name, value;

        lua_rawgeti(L, -1, (int)i + 1);
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        name         = lstr_at(L, -2);
        value        = lstr_at(L, -1);
        field->name  = lower_copy(&ex->arena, name);
        field->value = arena_copy(&ex->arena, value);
        field->id    = field_id_of(field->name);
        lua_pop(L, 3);
    }
    lua_pop(L, 1);
    request->field_count = count;
    request_index_fields(request);
}

static void read_request(lua_State *L, int table, struct test_wire *wire)
{
    struct exchange    *ex      = wire->ex;
    struct request     *request = &ex->request;
    const struct field *upgrade;
    size_t              question;

    request->method    = field_str(L, table, "method", &ex->arena);
    request->method_id = (unsigned char)route_method_of(request->method);
    request->target    = field_str(L, table, "target", &ex->arena);
    request->host      = field_str(L, table, "host", &ex->arena);
    question           = str_find(request->target, '?');
    request->path      = str_make(request->target.at, question);
    request->query     = question < request->target.len ? str_from(request->target, question + 1)
                                                        : str_make(request->target.at + question, 0);
    request->version_major  = 1;
    request->version_minor  = 1;
    request->keep_alive     = true;
    wire->body              = field_str(L, table, "body", &ex->arena);
    request->content_length = wire->body.len;
    request->has_body       = wire->body.len > 0;
    ex->request_state       = request->has_body ? REQUEST_BODY : REQUEST_ENDED;
    read_fields(L, table, ex);
    upgrade          = request_field(request, FIELD_UPGRADE);
    request->upgrade = upgrade ? upgrade->value : STR("");
}

static struct test_wire *new_wire(lua_State *L, struct env *env, struct lsite *site)
{
    struct test_wire *wire = calloc(1, sizeof(*wire));

    if (!wire)
        luaL_error(L, "not enough memory");
    wire->http = env->http;
    wire->site = site;
    wire->ex   = exchange_new(env->loop, env->arenas, &WIRE, wire);
    later_init(&wire->turn, on_turn);
    buf_init(&wire->head, ANSWER_BYTES_MAX);
    buf_init(&wire->answer, ANSWER_BYTES_MAX);
    buf_init(&wire->pieces, ANSWER_BYTES_MAX);
    buf_init(&wire->interim, ANSWER_BYTES_MAX);
    wire->ex->peer       = &wire->peer;
    wire->ex->started_ns = loop_now_ns(env->loop);
    return wire;
}

struct test_wire *ltest_wire_new(lua_State *L)
{
    struct env       *env  = env_of(L);
    struct lsite     *site = lsite_check(L, 1);
    struct test_wire *wire;
    const char       *ip;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_argcheck(L, env->http, 1, "there is no server in this state");
    task_current(L);
    wire = new_wire(L, env, site);
    lsite_hold(L, 1);
    read_request(L, 2, wire);
    lua_getfield(L, 2, "ip");
    ip = lua_tostring(L, -1);
    addr_parse_host(&wire->peer, ip ? ip : "127.0.0.1", 50000, NULL);
    wire->ex->tls = ltest_tls_read(L, 2, &wire->ex->arena);
    lua_getfield(L, 2, "body_limit");
    if (lua_isnumber(L, -1))
        wire->ex->body_limit = (uint64_t)lua_tonumber(L, -1);
    lua_pop(L, 2);
    take_turn(wire);
    return wire;
}

/* Where the work has let go nobody is to be told, and no turn may come: the VM ends. */
void ltest_wire_leave(struct test_wire *wire)
{
    struct exchange *ex = wire->ex;

    wire->waiter  = NULL;
    wire->streams = false;
    wire->left    = true;
    if (ex && !wire->let_go) {
        take_turn(wire);
        return;
    }
    if (ex)
        exchange_wire_let_go(ex);
    ltest_wire_free(wire);
}

/* --- the answer --------------------------------------------------------------------------------- */

void ltest_wire_push_fields(lua_State *L, const struct test_wire *wire)
{
    struct str rest  = buf_str(&wire->head);
    int        count = 0;

    lua_newtable(L);
    while (rest.len) {
        struct str line = str_make(rest.at, str_find(rest, '\n'));
        size_t     name = str_find(line, '\0');

        lua_createtable(L, 2, 0);
        lua_pushlstring(L, line.at, name);
        lua_rawseti(L, -2, 1);
        lua_pushlstring(L, line.at + name + 1, line.len - name - 1);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, ++count);
        rest = str_from(rest, line.len + 1);
    }
}

size_t ltest_wire_pieces(const struct test_wire *wire, size_t *first_len)
{
    if (wire->pieces.len)
        memcpy(first_len, wire->pieces.at, sizeof(*first_len));
    return wire->pieces.len / sizeof(*first_len);
}

void ltest_wire_drop_piece(struct test_wire *wire)
{
    size_t len = 0;

    if (!ltest_wire_pieces(wire, &len))
        return;
    buf_consume(&wire->answer, len);
    buf_consume(&wire->pieces, sizeof(len));
    if (wire->wants_room && wire->ex)
        take_turn(wire);
}
