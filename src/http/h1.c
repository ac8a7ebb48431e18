/* How it goes: h1_run() takes steps until none leads on. A step either looks for the next head
 * (no exchange is open) or looks after the open exchange: feeds its body, ends it, drains what it
 * did not want. Then all that was answered in between is written with one call, and whoever waits
 * for room is told.
 *
 * What the work asks for by exchange_...() lands in h1_wire.c. */
#include "http/h1.h"

#include "base/arena.h"
#include "http/h1_answered.h"
#include "http/h1_channel.h"
#include "http/h1_wire.h"
#include "http/h2.h"
#include "http/message.h"
#include "http/respond.h"

enum {
    BODY_PROGRESS_BYTES = 256, /* less is none: a byte a second would last for ever */
    FILLS_MAX           = 8,   /* reads of one connection in one turn */
    ROUNDS_MAX          = 16,  /* writes of one connection in one turn that made room for more */
    LOG_START_BYTES     = 256,
};

/* What one run may still do. */
struct run {
    unsigned requests;
    unsigned fills;
};

enum step {
    STEP_ON,    /* something happened: look again */
    STEP_WAIT,  /* nothing more can be done now */
    STEP_LATER, /* more could be done, but others have their turn first */
};

/* --- the wire's own answers -------------------------------------------------------------------------- */

static void report(struct conn *conn, const struct h1_fault *fault, struct str start)
{
    const struct http_server_options *options = &conn->server->options;
    struct http_refusal refusal = { REFUSED_REQUEST, fault->status, fault->reason, &conn->peer,
                                    start };

    if (refusal.start.len > LOG_START_BYTES)
        refusal.start.len = LOG_START_BYTES;
    refusal.start.len = str_find(refusal.start, '\r');
    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
}

void h1_refuse(struct conn *conn, const struct h1_fault *fault)
{
    struct str rest = conn_rest(conn);

    report(conn, fault, rest);
    respond_problem(&conn_output(conn)->bytes, fault->status, fault->reason,
                    str_starts_with(rest, STR("HEAD ")), &conn->server->date);
    conn_consume(conn, rest.len);
    conn->state = CONN_CLOSING;
}

/* An exchange that the work has left without an answer gets the wire's. */
static void answer_for_work(struct conn *conn, struct exchange *ex)
{
    bool            broken = ex->request_state == REQUEST_BROKEN;
    unsigned        status = broken ? ex->request_fault : 500;
    struct h1_fault fault  = { (unsigned short)status, broken ? h1_of(ex)->body.gate.fault.reason
                                                              : "the request was not answered" };

    if (!fault.reason)
        fault.reason = "the request was not completed";
    report(conn, &fault, ex->request.target);
    respond_problem(&conn_output(conn)->bytes, status, fault.reason,
                    str_is(ex->request.method, STR("HEAD")), &conn->server->date);
    ex->close_after   = true;
    ex->answer_status = (unsigned short)status;
    ex->answer_state  = ANSWER_ENDED;
}

/* --- the request's body ------------------------------------------------------------------------------- */

static void tell_body_end(struct exchange *ex)
{
    if (ex->work && ex->work->on_body_end && ex->body_wanted && ex->answer_state != ANSWER_ENDED)
        ex->work->on_body_end(ex);
}

/* Body data that has come: kept for the work, or counted and dropped when the answer is out. */
static void take_data(struct conn *conn, struct exchange *ex, struct str data)
{
    struct h1_exchange *h1 = h1_of(ex);

    if (!data.len)
        return;
    if (ex->answer_state == ANSWER_ENDED) {
        h1->drained += data.len;
        ex->body_bytes += data.len;
    } else {
        spare_take(conn->server, &ex->body);
        if (!exchange_put_body(ex, data))
            conn->failed = true;
    }
    if (ex->body_bytes - h1->progress_at >= BODY_PROGRESS_BYTES) {
        h1->progress_at = ex->body_bytes;
        conn->progress  = true;
    }
}

/* One element of the body. False: the rest holds no more of it. */
static bool feed_once(struct conn *conn, struct exchange *ex)
{
    struct h1_exchange *h1   = h1_of(ex);
    struct str          rest = conn_rest(conn), data;
    size_t              used;
    enum h1_reading     reading = h1_parse_body(&ex->arena, &h1->body, &conn->server->head_limits,
                                                rest.at, rest.len, &used, &data, &ex->request);

    take_data(conn, ex, data);
    if (reading == H1_REFUSED)
        h1_break_body(ex, h1->body.gate.fault.status, h1->body.gate.fault.reason);
    else if (reading == H1_DONE)
        ex->request_state = REQUEST_ENDED;
    conn_consume(conn, used);
    if (ex->request_state == REQUEST_BODY && ex->body_wanted && h1_is_too_large(ex))
        h1_break_body(ex, 413, "the body is too large");
    return used > 0 && ex->request_state == REQUEST_BODY;
}

/* As much of the body as the rest holds and the high mark lets in. */
static void feed_body(struct conn *conn, struct exchange *ex)
{
    while (ex->request_state == REQUEST_BODY && conn_rest(conn).len &&
           exchange_untaken(ex) < CONN_HIGH_BYTES)
        if (!feed_once(conn, ex))
            break;
}

/* Reads on for a body, or takes the end of the connection for its end. */
static enum step fill_body(struct conn *conn, struct exchange *ex, struct run *run)
{
    if (run->fills++ == FILLS_MAX)
        return STEP_LATER;
    switch (conn_fill(conn, CONN_BODY_READ_BYTES)) {
    case FILL_BYTES: return STEP_ON;
    case FILL_NOTHING: return STEP_WAIT;
    case FILL_END: break;
    }
    if (!conn->eof)
        return STEP_WAIT; /* reset: nobody is there to be told */
    h1_break_body(ex, 400, "the connection ended inside the body");
    tell_body_end(ex);
    return STEP_ON;
}

/* Someone waits for the body. */
static enum step read_body(struct conn *conn, struct exchange *ex, struct run *run)
{
    uint64_t before = ex->body_bytes;

    if (exchange_untaken(ex) >= CONN_HIGH_BYTES)
        return STEP_WAIT;
    feed_body(conn, ex);
    if (ex->request_state != REQUEST_BODY) {
        tell_body_end(ex);
        return STEP_ON;
    }
    if (ex->body_bytes > before) {
        if (ex->work && ex->work->on_body)
            ex->work->on_body(ex);
        return STEP_ON;
    }
    return fill_body(conn, ex, run);
}

/* Nobody does any more, but the next request stands behind it. */
static enum step drain_body(struct conn *conn, struct exchange *ex, struct run *run)
{
    buf_clear(&ex->body);
    ex->body_taken = 0;
    feed_body(conn, ex);
    if (h1_of(ex)->drained > H1_DRAIN_BYTES_MAX)
        ex->close_after = true;
    if (ex->request_state != REQUEST_BODY || ex->close_after)
        return STEP_ON;
    return fill_body(conn, ex, run);
}

/* --- the end of an exchange ------------------------------------------------------------------------------- */

/* Answered, and its request read as far as it ever will be. */
static void finish(struct conn *conn, struct exchange *ex)
{
    conn->exchange    = NULL;
    conn->served      = true;
    conn->progress    = true;
    conn->asked_close = !ex->request.keep_alive && ex->request_state == REQUEST_ENDED;
    if (h1_of(ex)->channel)
        h1_channel_begin(conn, h1_of(ex)->channel);
    else if (ex->close_after)
        conn->state = CONN_CLOSING;
    h1_answered(conn, ex);
}

/* The answer stops in the middle. A body that is framed by the connection's end would look
 * complete, but for a reset. */
static void cut(struct conn *conn, struct exchange *ex)
{
    conn->must_reset = h1_of(ex)->framing == RESPOND_UNTIL_CLOSE;
    ex->close_after  = true;
    finish(conn, ex);
}

static enum step step_exchange(struct conn *conn, struct run *run)
{
    struct exchange *ex = conn->exchange;

    if (!ex->work && ex->answer_state == ANSWER_OPEN)
        answer_for_work(conn, ex);
    else if (!ex->work && ex->answer_state == ANSWER_BODY)
        ex->answer_state = ANSWER_ABORTED;

    if (ex->answer_state == ANSWER_ABORTED) {
        cut(conn, ex);
        return STEP_ON;
    }
    if (ex->answer_state == ANSWER_ENDED) {
        if (conn_has_file(conn))
            return STEP_WAIT;
        if (ex->request_state == REQUEST_BODY && !ex->close_after)
            return drain_body(conn, ex, run);
        finish(conn, ex);
        return ++run->requests < conn->server->limits.pipeline ? STEP_ON : STEP_LATER;
    }
    if (ex->request_state == REQUEST_BODY && ex->body_wanted)
        return read_body(conn, ex, run);
    return STEP_WAIT;
}

/* --- the next request ---------------------------------------------------------------------------------------- */

static struct exchange *new_exchange(struct conn *conn)
{
    struct http_server *server = conn->server;
    struct exchange    *ex     = exchange_new(server->loop, server->options.arenas, &h1_wire, NULL);
    struct h1_exchange *h1     = arena_zalloc(&ex->arena, sizeof(*h1));

    h1->ex         = ex;
    h1->conn       = conn;
    ex->wire_data  = h1;
    ex->peer       = &conn->peer;
    ex->tls        = conn_tls_info(conn);
    ex->started_ns = loop_now_ns(server->loop);
    ex->body_limit = server->limits.body_bytes;
    return ex;
}

static void dispatch(struct conn *conn, struct exchange *ex)
{
    const struct http_server_options *options = &conn->server->options;

    ex->request_state    = ex->request.has_body ? REQUEST_BODY : REQUEST_ENDED;
    h1_of(ex)->continued = !ex->request.expects_continue;
    ex->close_after      = !ex->request.keep_alive;
    conn->exchange       = ex;
    conn->server->requests++;
    feed_body(conn, ex);
    options->dispatch(ex, options->arg);
}

/* A whole head lies at the beginning of REST. */
static void begin_exchange(struct conn *conn, struct str rest)
{
    struct h1_head_gate *gate  = conn_gate(conn);
    struct exchange     *ex    = new_exchange(conn);
    struct str           head  = str_make(rest.at + gate->start, gate->scanned - gate->start);
    struct h1_fault      fault = { 0 };

    if (!h1_parse_head(&ex->arena, head, gate->fields, &ex->request, &h1_of(ex)->body, &fault)) {
        exchange_wire_let_go(ex);
        h1_refuse(conn, &fault);
        return;
    }
    rest.len = gate->scanned;
    h1_gate_init(gate);
    conn_consume(conn, rest.len);
    dispatch(conn, ex);
}

static enum step fill_head(struct conn *conn, struct run *run)
{
    if (run->fills++ == FILLS_MAX)
        return STEP_LATER;
    switch (conn_fill(conn, CONN_HEAD_READ_BYTES)) {
    case FILL_BYTES: return STEP_ON;
    case FILL_NOTHING: return STEP_WAIT;
    case FILL_END: conn->state = CONN_CLOSING; break; /* half a head is not worth an answer */
    }
    return STEP_WAIT;
}

/* Nothing that HTTP has to say would be understood there, and its bytes are no news for the log. */
static void refuse_hello(struct conn *conn)
{
    const struct http_server_options *options = &conn->server->options;
    struct http_refusal               refusal = { .kind   = REFUSED_HELLO,
                                                  .reason = "TLS on a port of plain HTTP",
                                                  .peer   = &conn->peer };

    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
    conn->failed = true;
}

static void refuse_head(struct conn *conn)
{
    if (conn_rest(conn).at[0] == TLS_HANDSHAKE_BYTE && !conn->served && !conn_tls_info(conn))
        refuse_hello(conn);
    else
        h1_refuse(conn, &conn_gate(conn)->fault);
}

/* RFC 9113, 3.3: who knows that we speak HTTP/2 begins with its preface. */
static bool may_be_h2(const struct conn *conn, struct str rest)
{
    struct str preface = H2_PREFACE;

    return !conn->served && conn->server->limits.streams &&
           str_starts_with(rest.len < preface.len ? preface : rest,
                           rest.len < preface.len ? rest : preface);
}

static enum step step_head(struct conn *conn, struct run *run)
{
    struct str rest = conn_rest(conn);

    if (conn_pending(conn) >= CONN_HIGH_BYTES)
        return STEP_WAIT; /* who does not read his answers gets no more of them */
    if (rest.len && may_be_h2(conn, rest)) {
        if (rest.len < H2_PREFACE.len)
            return fill_head(conn, run);
        h2_begin(conn);
        return STEP_WAIT;
    }
    if (rest.len) {
        switch (h1_gate_head(conn_gate(conn), &conn->server->head_limits, rest.at, rest.len)) {
        case H1_DONE: begin_exchange(conn, rest); return STEP_ON;
        case H1_REFUSED: refuse_head(conn); return STEP_WAIT;
        case H1_MORE: break;
        }
    }
    return fill_head(conn, run);
}

/* --- running ---------------------------------------------------------------------------------------------------- */

static enum step take_step(struct conn *conn, struct run *run)
{
    if (conn->speech != CONN_H1)
        return STEP_WAIT;
    if (conn->exchange)
        return step_exchange(conn, run);
    return conn->state == CONN_OPEN ? step_head(conn, run) : STEP_WAIT;
}

static struct h1_exchange *open_exchange(const struct conn *conn)
{
    return conn->speech == CONN_H1 && conn->exchange ? h1_of(conn->exchange) : NULL;
}

/* The open exchange's share of the news. True: its work was told something. */
static bool tell_open(struct conn *conn, bool all_gone)
{
    struct h1_exchange *h1 = open_exchange(conn);

    if (!h1)
        return false;
    if (all_gone && h1->ex->answer_state == ANSWER_ENDED)
        h1_answered_sent(h1);
    if (!h1->wants_room || conn_pending(conn) > CONN_LOW_BYTES)
        return false;
    h1->wants_room = false;
    if (h1->ex->work && h1->ex->work->on_room && h1->ex->answer_state == ANSWER_BODY)
        h1->ex->work->on_room(h1->ex);
    return true;
}

/* True: there is reason to look again, since room was made or a file has ended. */
static bool flush(struct conn *conn)
{
    bool was_full = conn_pending(conn) >= CONN_HIGH_BYTES, had_file = conn_has_file(conn);
    bool all_gone = h1_answered_flush(conn), told = tell_open(conn, all_gone);

    return told || (had_file && !conn_has_file(conn)) ||
           (was_full && conn_pending(conn) < CONN_HIGH_BYTES);
}

static void run(struct conn *conn)
{
    struct run left = { 0 };

    for (unsigned rounds = 0; rounds < ROUNDS_MAX; rounds++) {
        enum step step;

        do
            step = take_step(conn, &left);
        while (step == STEP_ON);
        if (!flush(conn) && step == STEP_WAIT)
            return;
        if (step == STEP_LATER)
            break;
    }
    conn->again = true;
}

/* --- time ---------------------------------------------------------------------------------------------------------- */

static bool reads_body(const struct exchange *ex)
{
    if (ex->request_state != REQUEST_BODY)
        return false;
    return ex->answer_state == ANSWER_ENDED ||
           (ex->body_wanted && exchange_untaken(ex) < CONN_HIGH_BYTES);
}

static enum conn_wait waits_for(const struct conn *conn)
{
    const struct exchange *ex = conn->exchange;

    if (reads_body(ex))
        return CONN_WAIT_BODY;
    if (conn->stream.saw_fin && !conn->half_closed && ex->answer_state < ANSWER_ENDED)
        return CONN_WAIT_HALF_CLOSE;
    return CONN_WAIT_WORK;
}

static void head_is_late(struct conn *conn)
{
    static const struct h1_fault late = { 408, "the request took too long" };

    if (conn_rest(conn).len)
        h1_refuse(conn, &late);
    else
        conn->state = CONN_CLOSING; /* nothing was asked */
}

static void body_is_late(struct conn *conn)
{
    struct exchange *ex = conn->exchange;

    h1_break_body(ex, 408, "the body took too long");
    tell_body_end(ex);
}

static void lost(struct conn *conn, enum gone_why why)
{
    struct exchange *ex = conn->exchange;

    h1_answered_lost(conn, why);
    conn->exchange = NULL;
    if (!ex)
        return;
    if (h1_of(ex)->channel)
        h1_channel_lost(h1_of(ex)->channel, why);
    h1_answered_lose(conn, ex, why);
}

static bool is_busy(const struct conn *conn)
{
    return conn->exchange != NULL;
}

const struct conn_protocol h1_protocol = {
    .run          = run,
    .is_busy      = is_busy,
    .waits_for    = waits_for,
    .head_is_late = head_is_late,
    .body_is_late = body_is_late,
    .lost         = lost,
};
