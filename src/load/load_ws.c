/* The connection is itself the wire of the socket's channel: what was read goes to the socket at once, what
 * it writes goes into the connection's output. */
#include "load/load_ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/iov.h"
#include "http/channel.h"
#include "http/h1_parse.h"
#include "http/h1_response.h"
#include "ws/ws.h"
#include "load/load_account.h"
#include "load/load_out.h"
#include "load/load_state.h"

enum { MESSAGE_BYTES_MAX = 64 * 1024 * 1024 };

static const struct h1_limits LIMITS = { .line_bytes = 8192, .head_bytes = 65536, .fields = 256 };

/* --- the channel -------------------------------------------------------------------------------------- */

static struct load_conn *conn_of(const struct channel *channel)
{
    return container_of(channel, struct load_conn, ws.channel);
}

static enum channel_reading wire_fill(struct channel *channel)
{
    struct load_ws *ws       = &conn_of(channel)->ws;
    bool            has_news = ws->has_news;

    ws->has_news = false;
    return has_news ? CHANNEL_BYTES : CHANNEL_NOTHING;
}

static struct str wire_rest(const struct channel *channel)
{
    const struct load_ws *ws = &conn_of(channel)->ws;

    return str_from(buf_str(&ws->in), ws->used);
}

static void wire_consume(struct channel *channel, size_t bytes)
{
    struct load_ws *ws = &conn_of(channel)->ws;

    ws->used += bytes;
    if (ws->used < ws->in.len)
        return;
    buf_clear(&ws->in);
    ws->used = 0;
}

/* What one turn has to say leaves together. */
static ssize_t wire_write(struct channel *channel, const struct iovec *iov, int count)
{
    struct load_conn *conn = conn_of(channel);

    load_out_keep(conn, iov, count);
    if (!conn->ws.is_filling) /* pongs, and the end of the closing handshake */
        timer_start(&conn->more, conn->thread->loop, 0);
    return (ssize_t)iov_len(iov, count);
}

static size_t wire_pending(const struct channel *channel)
{
    const struct load_conn *conn = conn_of(channel);

    return conn->out.len - conn->out_sent;
}

static void wire_wake(struct channel *channel)
{
    loop_later(conn_of(channel)->thread->loop, &conn_of(channel)->ws.turn);
}

static void wire_let_go(struct channel *channel)
{
    channel->user = NULL;
}

static const struct channel_wire WIRE = {
    .fill    = wire_fill,
    .rest    = wire_rest,
    .consume = wire_consume,
    .write   = wire_write,
    .pending = wire_pending,
    .wake    = wire_wake,
    .end     = wire_let_go,
    .abort   = wire_let_go,
};

/* The connection looks after what came of it: more room, or its end. */
static void on_turn(struct later *later)
{
    struct load_conn *conn = container_of(later, struct load_conn, ws.turn);

    conn->thread->now_ns = clock_mono_ns();
    channel_tell_bytes(&conn->ws.channel);
    timer_start(&conn->more, conn->thread->loop, 0);
}

/* --- messages ------------------------------------------------------------------------------------------ */

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct load_conn *conn = ws_arg(ws);
    struct load_body  body = { 0 };
    struct load_slot  slot;

    ws_next(ws);
    if (conn->under_way == 0) {
        load_count(&conn->thread->counts.unasked, 1);
        return;
    }
    slot = load_slot_take(conn);
    load_body_compare(&body, &load_plan_of(conn)->requests[slot.request], data);
    load_account_answer(conn, &slot, LOAD_WS_STATUS, &body, conn->thread->now_ns);
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    struct load_conn *conn = ws_arg(ws);

    conn->ws.ws      = NULL;
    conn->ws.is_gone = true;
}

static const struct ws_user USER = { .on_message = on_message, .on_closed = on_closed };

static enum load_fault health(const struct load_conn *conn)
{
    return conn->ws.is_gone || load_account_is_used_up(conn) ? LOAD_CLOSED : LOAD_WELL;
}

/* --- the handshake ------------------------------------------------------------------------------------- */

/* REQUEST's bytes with ids of their own are in conn->ws.copy. */
static struct str bytes_of(struct load_conn *conn, const struct load_request *request)
{
    if (!request->id_count)
        return request->bytes;
    buf_clear(&conn->ws.copy);
    buf_add_str(&conn->ws.copy, request->bytes);
    if (conn->ws.copy.failed)
        abort();
    load_out_write_ids(conn->thread, request, conn->ws.copy.at);
    return buf_str(&conn->ws.copy);
}

/* Of the first request that the connection will send. */
static const struct load_request *first_request(struct load_conn *conn)
{
    const struct load_plan *plan = load_plan_of(conn);
    unsigned                step = conn->step;

    while (plan->requests[plan->wheel[step % plan->wheel_len]].origin != conn->origin)
        step++;
    return &plan->requests[plan->wheel[step % plan->wheel_len]];
}

static enum load_fault ask(struct load_conn *conn)
{
    const struct load_request *request = first_request(conn);
    struct field               fields[WS_ASK_FIELDS_MAX];
    struct buf                 head;
    struct iovec               piece;
    bool                       is_well;

    ws_ask_init(&conn->ws.ask, STR_NONE, false);
    buf_init(&head, SIZE_MAX);
    buf_add_str(&head, str_make(bytes_of(conn, request).at, request->body_at));
    for (unsigned i = 0, n = ws_ask_fields(&conn->ws.ask, fields); i < n; i++)
        buf_printf(&head, "%.*s: %.*s\r\n", STR_ARG(fields[i].name), STR_ARG(fields[i].value));
    buf_add_str(&head, STR("\r\n"));
    if (head.failed)
        abort();
    piece   = (struct iovec){ head.at, head.len };
    is_well = load_out_send(conn, &piece, 1);
    buf_fini(&head);
    return is_well ? LOAD_WELL : LOAD_RESET;
}

static enum load_fault open_socket(struct load_conn *conn)
{
    struct ws_options options = {
        .client = true,
        .limit  = MESSAGE_BYTES_MAX,
        .buffer = LOAD_OUT_BYTES_MAX,
    };

    conn->ws.channel = (struct channel){ .wire = &WIRE };
    if (ws_open(&conn->ws.ws, conn->thread->ws_shared, &conn->ws.channel, &options, &USER, conn) !=
        0)
        abort();
    conn->ws.has_news = conn->ws.in.len > conn->ws.used;
    return LOAD_WELL;
}

/* What a server says to who may not, or to a wrong path, is worth telling: by its status. */
static const char *reason_of(struct load_conn *conn, unsigned status,
                             const struct ws_agreed *agreed)
{
    if (status == 0 || status == 101)
        return agreed->reason;
    snprintf(conn->ws.refusal, sizeof(conn->ws.refusal),
             "the server answers %u instead of switching to WebSocket", status);
    return conn->ws.refusal;
}

/* A complete head lies in front of `in`. */
static enum load_fault check_answer(struct load_conn *conn)
{
    struct str        head     = str_make(conn->ws.in.at, conn->ws.gate.scanned);
    struct response   response = { 0 };
    struct h1_body    body;
    struct h1_fault   fault;
    struct ws_agreed  agreed = { .reason = "what came is no HTTP response" };
    struct arena_pool pool;
    struct arena      arena;
    bool              is_well;

    arena_pool_init(&pool, 0);
    arena_init(&arena, &pool);
    is_well = h1_parse_response_head(&arena, head, conn->ws.gate.fields, false, &response, &body,
                                     &fault) &&
              ws_check_answer(&conn->ws.ask, response.status, response.fields, response.field_count,
                              &agreed);
    arena_reset(&arena);
    arena_pool_fini(&pool);
    conn->ws.why  = reason_of(conn, response.status, &agreed);
    conn->ws.used = head.len;
    return is_well ? open_socket(conn) : LOAD_MALFORMED;
}

static enum load_fault read_answer(struct load_conn *conn)
{
    switch (h1_gate_head(&conn->ws.gate, &LIMITS, conn->ws.in.at, conn->ws.in.len)) {
    case H1_MORE: return LOAD_WELL;
    case H1_DONE: return check_answer(conn);
    default: conn->ws.why = "what came is no HTTP response"; return LOAD_MALFORMED;
    }
}

/* --- bytes --------------------------------------------------------------------------------------------- */

static enum load_fault take(struct load_conn *conn, const char *bytes, size_t len, uint64_t now_ns)
{
    conn->thread->now_ns = now_ns;
    buf_consume(&conn->ws.in, conn->ws.used);
    conn->ws.used = 0;
    buf_add(&conn->ws.in, bytes, len);
    if (conn->ws.in.failed)
        abort();
    if (!conn->ws.ws)
        return conn->ws.is_gone ? LOAD_CLOSED : read_answer(conn);
    conn->ws.has_news = true;
    channel_tell_bytes(&conn->ws.channel);
    return health(conn);
}

static void end(struct load_conn *conn, uint64_t now_ns)
{
}

static enum load_fault resume(struct load_conn *conn)
{
    if (!load_out_resume(conn))
        return LOAD_RESET;
    return health(conn);
}

/* --- sending ------------------------------------------------------------------------------------------- */

static unsigned room(const struct load_conn *conn)
{
    return conn->ws.ws && ws_is_open(conn->ws.ws) ? load_plan_of(conn)->pipelining - conn->under_way
                                                  : 0;
}

static void issue(struct load_conn *conn, uint64_t planned_ns, uint64_t now_ns)
{
    struct load_slot          *slot    = load_slot_at(conn, conn->under_way);
    const struct load_request *request = load_account_issue(conn, slot, planned_ns, now_ns);
    struct str                 message = str_from(bytes_of(conn, request), request->body_at);

    switch (ws_send(conn->ws.ws, load_plan_of(conn)->is_binary ? WS_BINARY : WS_TEXT, message)) {
    case 0: break;
    case WS_GONE: conn->ws.is_gone = true; break;
    default: abort(); /* memory: the rest the plan has seen to */
    }
}

static enum load_fault fill(struct load_conn *conn, uint64_t now_ns, unsigned most)
{
    uint64_t planned_ns;

    conn->ws.is_filling = true;
    while (most-- > 0 && !conn->ws.is_gone && load_account_may_issue(conn) &&
           load_account_is_due(conn, now_ns, &planned_ns))
        issue(conn, planned_ns, now_ns);
    conn->ws.is_filling = false;
    if (conn->ws.is_gone)
        return LOAD_CLOSED;
    return load_out_resume(conn) ? LOAD_WELL : LOAD_RESET;
}

static enum load_fault check(struct load_conn *conn, uint64_t late_ns)
{
    return load_slot_is_late(conn, late_ns) ? LOAD_TIMEOUT : health(conn);
}

/* --- life ---------------------------------------------------------------------------------------------- */

static enum load_fault begin(struct load_conn *conn)
{
    conn->ws = (struct load_ws){ 0 };
    later_init(&conn->ws.turn, on_turn);
    buf_init(&conn->ws.in, SIZE_MAX);
    buf_init(&conn->ws.copy, SIZE_MAX);
    h1_gate_init_response(&conn->ws.gate);
    h1_parse_init();
    return ask(conn);
}

static bool is_ready(const struct load_conn *conn)
{
    return conn->ws.ws != NULL;
}

static const char *why(const struct load_conn *conn)
{
    return conn->ws.why;
}

static void leave(struct load_conn *conn)
{
    if (conn->ws.ws)
        ws_abort(conn->ws.ws);
    if (conn->ws.turn.fn)
        later_cancel(&conn->ws.turn);
    buf_fini(&conn->ws.in);
    buf_fini(&conn->ws.copy);
    conn->ws = (struct load_ws){ 0 };
}

const struct load_protocol LOAD_WS = {
    .begin    = begin,
    .is_ready = is_ready,
    .why      = why,
    .leave    = leave,
    .room     = room,
    .fill     = fill,
    .take     = take,
    .end      = end,
    .resume   = resume,
    .check    = check,
};

int load_ws_open(struct load_thread *thread, struct err *err)
{
    if (thread->shared->plan->speech != LOAD_SPEAKS_WS)
        return 0;
    return ws_shared_open(&thread->ws_shared, thread->loop, err);
}

void load_ws_close(struct load_thread *thread)
{
    ws_shared_close(thread->ws_shared);
    thread->ws_shared = NULL;
}
