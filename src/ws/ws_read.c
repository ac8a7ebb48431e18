#include "ws/ws_read.h"

#include "base/compiler.h"
#include "http/channel.h"
#include "ws/ws_end.h"
#include "ws/ws_impl.h"
#include "ws/ws_say.h"
#include "ws/ws_utf8.h"

enum {
    TURN_BYTES     = 256 * 1024, /* read or inflated in one turn: then others have theirs */
    STEP_BYTES     = 1024, /* what a frame costs beside its bytes, for empty ones are not free */
    WS_PACE_BYTES  = 256,  /* less of a message than that is no progress */
    PONG_BYTES_MAX = 16 * 1024, /* a peer that pings and has as much to take is not read */
};

/* --- what comes -------------------------------------------------------------------------------------- */

static void tell_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    ws->busy = true;
    ws->shared->counts.messages_in++;
    ws->user->on_message(ws, kind, data);
}

static const char *unpack_reason(unsigned code)
{
    switch (code) {
    case WS_CODE_TOO_LARGE: return "message too large";
    case WS_CODE_BAD_DATA: return "message is not deflated well";
    default: return "out of memory";
    }
}

/* Returns its bytes when inflated. */
static size_t take_deflated(struct ws *ws, enum ws_kind kind)
{
    struct ws_deflater *deflater = &ws->shared->deflater;
    struct str          data;
    unsigned            code = ws_unpack(deflater, ws->reader->data, ws->rules.limit, &data);

    if (code)
        ws_fail(ws, code, unpack_reason(code));
    else if (kind == WS_TEXT && !ws_utf8_is_text(data))
        ws_fail(ws, WS_CODE_BAD_DATA, "text is not UTF-8");
    else
        tell_message(ws, kind, data);
    ws_unpack_end(deflater);
    return data.len;
}

static size_t take_message(struct ws *ws)
{
    size_t bytes = ws->reader->piece_len;

    if (ws->reader->deflated)
        bytes += take_deflated(ws, ws->reader->kind);
    else
        tell_message(ws, ws->reader->kind, ws->reader->data);
    if (ws->reader) {
        limit_stop(&ws->reader->pace.limit);
        ws_reader_drop(ws->reader);
    }
    return bytes;
}

static void take_ping(struct ws *ws, struct str payload)
{
    if (ws->state != WS_OPEN)
        return;
    ws_say_control(ws, WS_OP_PONG, payload);
    ws->held = ws_output_waiting(&ws->output) > PONG_BYTES_MAX;
}

/* The peer closes: its code goes back to it. */
static void take_first_close(struct ws *ws, struct str payload)
{
    unsigned   code   = WS_CODE_NONE;
    struct str reason = STR_NONE;

    if (payload.len >= 2) {
        code   = (unsigned)(unsigned char)payload.at[0] << 8 | (unsigned char)payload.at[1];
        reason = str_from(payload, 2);
    }
    if (payload.len == 1 || (payload.len && !ws_code_may_be_sent(code))) {
        ws_fail(ws, WS_CODE_PROTOCOL, "bad close code");
    } else if (!ws_utf8_is_text(reason)) {
        ws_fail(ws, WS_CODE_BAD_DATA, "reason is not UTF-8");
    } else {
        ws_note_end(ws, code, reason);
        ws_say_close(ws, code, STR(""));
        ws->waits_end = ws->client;
        ws_begin_end(ws);
    }
}

static void take_control(struct ws *ws)
{
    struct str payload = ws->reader->data;

    if (ws->reader->opcode == WS_OP_PING) {
        take_ping(ws, payload);
    } else if (ws->reader->opcode == WS_OP_CLOSE && ws->state == WS_OPEN) {
        take_first_close(ws, payload);
    } else if (ws->reader->opcode == WS_OP_CLOSE) {
        ws->waits_end = ws->client;
        ws_begin_end(ws);
    }
}

/* --- a message that does not go on ---------------------------------------------------------------------- */

/* While a message is handled, or output waits, it is we who do not read. */
static void on_slow(struct ws_due *due)
{
    struct ws *ws = container_of(due, struct ws_reader, pace)->owner;

    if (ws->state != WS_OPEN)
        return; /* the closing handshake has a limit of its own */
    ws_enter(ws);
    if (ws_may_read(ws))
        ws_fail(ws, WS_CODE_POLICY, "message comes too slowly");
    else
        limit_start(&due->limit, &ws->pace->queue);
    ws_leave(ws);
}

void ws_watch_pace(struct ws *ws)
{
    struct ws_reader *reader = ws->reader;

    if (!reader || !ws->pace || ws->state != WS_OPEN)
        return;
    if (list_is_linked(&reader->pace.limit.link) && reader->given - reader->paced < WS_PACE_BYTES)
        return;
    reader->owner   = ws;
    reader->pace.fn = on_slow;
    reader->paced   = reader->given;
    limit_start(&reader->pace.limit, &ws->pace->queue);
}

/* --- reading --------------------------------------------------------------------------------------------- */

void ws_sign_of_life(struct ws *ws)
{
    ws->pinged = false;
    if (ws->state == WS_OPEN && ws->beat)
        limit_start(&ws->due.limit, &ws->beat->queue);
}

static void peer_has_ended(struct ws *ws)
{
    if (ws->state != WS_ENDING)
        ws_note_end(ws, WS_CODE_ABNORMAL, STR(""));
    ws_end_channel(ws);
}

/* False: nothing is there, or the socket is over. */
static bool fill(struct ws *ws)
{
    switch (channel_fill(ws->channel)) {
    case CHANNEL_BYTES: ws_sign_of_life(ws); return true;
    case CHANNEL_NOTHING: return false;
    case CHANNEL_END: break;
    }
    peer_has_ended(ws);
    return false;
}

/* Bytes that nobody reads any more, up to the end. */
static bool pass_over(struct ws *ws)
{
    channel_consume(ws->channel, channel_rest(ws->channel).len);
    return fill(ws);
}

static bool borrow_reader(struct ws *ws)
{
    if (!ws->reader)
        ws->reader = ws_shared_lend(ws->shared);
    if (!ws->reader)
        ws_cut(ws, WS_CODE_ABNORMAL);
    return ws->reader != NULL;
}

static enum ws_step step(struct ws *ws)
{
    struct str   rest = channel_rest(ws->channel), in = rest;
    enum ws_step result = ws_reader_step(ws->reader, &in, &ws->rules, ws->state != WS_OPEN);

    channel_consume(ws->channel, rest.len - in.len);
    return result;
}

/* One piece of a frame; its cost is added to *SPENT. False: there is none, or the socket is over. */
static bool read_piece(struct ws *ws, size_t *spent)
{
    if (!ws->reader && !channel_rest(ws->channel).len && !fill(ws))
        return false;
    if (!borrow_reader(ws))
        return false;
    *spent += STEP_BYTES;
    switch (step(ws)) {
    case WS_STEP_WANT: return fill(ws);
    case WS_STEP_PART: *spent += ws->reader->piece_len; break;
    case WS_STEP_MESSAGE: *spent += take_message(ws); break;
    case WS_STEP_CONTROL: take_control(ws); break;
    case WS_STEP_BROKEN: ws_fail(ws, ws->reader->code, ws->reader->reason); break;
    }
    return true;
}

bool ws_may_read(const struct ws *ws)
{
    switch ((enum ws_state)ws->state) {
    case WS_OPEN: return !ws->busy && !ws->held;
    case WS_CLOSING: return true;
    case WS_ENDING: return ws->waits_end;
    case WS_OVER: break;
    }
    return false;
}

void ws_read_turn(struct ws *ws)
{
    size_t spent = 0;

    while (ws_may_read(ws)) {
        if (spent >= TURN_BYTES) {
            channel_wake(ws->channel);
            return;
        }
        if (ws->state == WS_ENDING ? !pass_over(ws) : !read_piece(ws, &spent))
            return;
    }
}

void ws_let_read_on(struct ws *ws)
{
    if (!ws->held || ws_output_waiting(&ws->output) > PONG_BYTES_MAX / 2)
        return;
    ws->held = false;
    channel_wake(ws->channel);
}
