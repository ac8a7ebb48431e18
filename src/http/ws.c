/* A socket's life: bytes from its channel to a reader, messages to its user, frames back.
 *
 * The rule that keeps it safe: only an event of the channel or of a time limit frees a socket, when
 * it has run to its end. What the user does meanwhile changes its state. */
#include "http/ws.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "http/channel.h"
#include "http/ws_output.h"
#include "http/ws_reader.h"
#include "http/ws_utf8.h"

enum {
    TURN_BYTES      = 256 * 1024, /* read or inflated in one turn: then others have theirs */
    STEP_BYTES      = 1024, /* what a frame costs beside its bytes, for empty ones are not free */
    PONG_BYTES_MAX  = 16 * 1024, /* a peer that pings and has as much to take is not read */
    DEFLATE_BITS    = 15,
    BYTES_MAX_SHIFT = 30, /* no message is larger than 1 GiB, whatever the options say */
};

enum ws_state {
    WS_OPEN,
    WS_CLOSING, /* our close frame has gone, the peer's is awaited; its messages are passed over */
    WS_ENDING,  /* all is said: what waits goes out, and the channel ends */
    WS_OVER,    /* the channel was let go */
};

struct ws {
    struct ws_shared     *shared;  /* borrowed */
    struct channel       *channel; /* NULL: over */
    const struct ws_user *user;
    void                 *arg;

    struct ws_rules   rules;
    struct ws_reader *reader; /* lent; NULL at rest */
    struct ws_output  output;
    uint64_t          buffer;
    size_t            fragment;
    size_t            deflate_max; /* longer messages go plain: the peer's window is small */

    struct ws_due   due;  /* the next heartbeat, or the end of the closing handshake */
    struct ws_beat *beat; /* NULL: no heartbeat */

    char          *reason; /* owned, or NULL */
    unsigned short code;   /* for on_closed(), once it closes */
    unsigned char  reason_len;

    unsigned state : 2;
    bool     client : 1;
    bool     in_event : 1;   /* it is not freed before that has run to its end */
    bool     reading : 1;    /* and that is on_bytes(), which goes on by itself */
    bool     busy : 1;       /* a message is handled: the next one waits */
    bool     held : 1;       /* not read until the peer takes what waits for it */
    bool     wants_room : 1; /* a send met WAIT */
    bool     pinged : 1;     /* nothing has come since our ping */
    bool     waits_end : 1;  /* a client's lets the server end first (RFC 6455, 7.1.1) */
    bool     failed : 1;     /* no memory for what it had to send */
};

/* --- events begin and end -------------------------------------------------------------------------- */

static void drop_reader(struct ws *ws)
{
    if (ws->reader)
        ws_shared_take_back(ws->shared, ws->reader);
    ws->reader = NULL;
}

static void ws_free(struct ws *ws)
{
    drop_reader(ws);
    limit_stop(&ws->due.limit);
    ws_shared_drop_beat(ws->beat);
    ws_output_fini(&ws->output);
    ws->shared->counts.sockets--;
    free(ws->reason);
    free(ws);
}

static void enter(struct ws *ws)
{
    ws->in_event = true;
}

static void leave(struct ws *ws)
{
    ws->in_event = false;
    if (ws->state == WS_OVER)
        ws_free(ws);
}

/* --- sending ----------------------------------------------------------------------------------------- */

/* Torn frames cannot be mended: the socket is cut in its next event. */
static int fail_for_memory(struct ws *ws)
{
    ws->failed = true;
    channel_wake(ws->channel);
    return WS_MEMORY;
}

static int send_frame(struct ws *ws, struct ws_frame_head head, struct str payload)
{
    struct ws_encoder *encoder = &ws->shared->encoder;
    bool               sent;

    head.masked = ws->client;
    sent        = ws_encode(encoder, &head, payload) &&
           ws_output_put(&ws->output, ws->channel, encoder->pieces, encoder->piece_count);
    ws_encode_end(encoder);
    return sent ? 0 : fail_for_memory(ws);
}

static void send_control(struct ws *ws, enum ws_opcode opcode, struct str payload)
{
    send_frame(ws, (struct ws_frame_head){ .opcode = opcode, .last = true }, payload);
}

/* CODE_NONE: without one. */
static void send_close(struct ws *ws, unsigned code, struct str reason)
{
    char   payload[WS_CONTROL_BYTES_MAX] = { (char)(code >> 8), (char)code };
    size_t len                           = code == WS_CODE_NONE ? 0 : 2;

    if (len && reason.len) {
        memcpy(payload + len, reason.at, reason.len);
        len += reason.len;
    }
    send_control(ws, WS_OP_CLOSE, str_make(payload, len));
}

/* --- the end ------------------------------------------------------------------------------------------ */

/* What on_closed() will say; without memory for it, the reason is left out. */
static void note_end(struct ws *ws, unsigned code, struct str reason)
{
    free(ws->reason);
    ws->reason     = reason.len ? malloc(reason.len) : NULL;
    ws->reason_len = ws->reason ? (unsigned char)reason.len : 0;
    ws->code       = (unsigned short)code;
    if (ws->reason)
        memcpy(ws->reason, reason.at, reason.len);
}

/* The last thing that an event does. */
static void finish(struct ws *ws)
{
    ws->state   = WS_OVER;
    ws->channel = NULL;
    limit_stop(&ws->due.limit);
    if (ws->user->on_closed)
        ws->user->on_closed(ws, ws->code, str_make(ws->reason, ws->reason_len));
}

static void end_channel(struct ws *ws)
{
    channel_end(ws->channel);
    finish(ws);
}

static void cut(struct ws *ws, unsigned code)
{
    if (code)
        note_end(ws, code, STR(""));
    channel_abort(ws->channel);
    finish(ws);
}

static void end_if_sent(struct ws *ws)
{
    if (ws_output_waiting(&ws->output) == 0 && !ws->waits_end)
        end_channel(ws);
}

static void on_closing_late(struct ws_due *due)
{
    struct ws *ws = container_of(due, struct ws, due);

    enter(ws);
    cut(ws, ws->state == WS_CLOSING ? WS_CODE_ABNORMAL : 0);
    leave(ws);
}

static void start_closing_limit(struct ws *ws)
{
    ws->due.fn = on_closing_late;
    limit_start(&ws->due.limit, &ws->shared->closings);
}

static void begin_end(struct ws *ws)
{
    ws->state = WS_ENDING;
    start_closing_limit(ws);
    drop_reader(ws);
    end_if_sent(ws);
}

/* The peer broke the rules: it is told how, and not heard any more (RFC 6455, 7.1.7). */
static void fail(struct ws *ws, unsigned code, const char *why)
{
    struct str reason = str_of(why);

    if (ws->state == WS_OPEN) {
        note_end(ws, code, reason);
        send_close(ws, code, reason);
    }
    begin_end(ws);
}

/* --- what comes ----------------------------------------------------------------------------------------- */

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
        fail(ws, code, unpack_reason(code));
    else if (kind == WS_TEXT && !ws_utf8_is_text(data))
        fail(ws, WS_CODE_BAD_DATA, "text is not UTF-8");
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
    if (ws->reader)
        ws_reader_drop(ws->reader);
    return bytes;
}

static void take_ping(struct ws *ws, struct str payload)
{
    if (ws->state != WS_OPEN)
        return;
    send_control(ws, WS_OP_PONG, payload);
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
        fail(ws, WS_CODE_PROTOCOL, "bad close code");
    } else if (!ws_utf8_is_text(reason)) {
        fail(ws, WS_CODE_BAD_DATA, "reason is not UTF-8");
    } else {
        note_end(ws, code, reason);
        send_close(ws, code, STR(""));
        ws->waits_end = ws->client;
        begin_end(ws);
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
        begin_end(ws);
    }
}

/* --- reading --------------------------------------------------------------------------------------------- */

static void sign_of_life(struct ws *ws)
{
    ws->pinged = false;
    if (ws->state == WS_OPEN && ws->beat)
        limit_start(&ws->due.limit, &ws->beat->queue);
}

static void peer_has_ended(struct ws *ws)
{
    if (ws->state != WS_ENDING)
        note_end(ws, WS_CODE_ABNORMAL, STR(""));
    end_channel(ws);
}

/* False: nothing is there, or the socket is over. */
static bool fill(struct ws *ws)
{
    switch (channel_fill(ws->channel)) {
    case CHANNEL_BYTES: sign_of_life(ws); return true;
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
        cut(ws, WS_CODE_ABNORMAL);
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
    case WS_STEP_BROKEN: fail(ws, ws->reader->code, ws->reader->reason); break;
    }
    return true;
}

static bool may_read(const struct ws *ws)
{
    switch ((enum ws_state)ws->state) {
    case WS_OPEN: return !ws->busy && !ws->held;
    case WS_CLOSING: return true;
    case WS_ENDING: return ws->waits_end;
    case WS_OVER: break;
    }
    return false;
}

static void read_turn(struct ws *ws)
{
    size_t spent = 0;

    while (may_read(ws)) {
        if (spent >= TURN_BYTES) {
            channel_wake(ws->channel);
            return;
        }
        if (ws->state == WS_ENDING ? !pass_over(ws) : !read_piece(ws, &spent))
            return;
    }
}

/* --- the channel's events -------------------------------------------------------------------------------- */

static void on_bytes(struct channel *channel)
{
    struct ws *ws = channel->arg;

    enter(ws);
    ws->reading = true;
    if (ws->failed)
        cut(ws, WS_CODE_ABNORMAL);
    read_turn(ws);
    ws->reading = false;
    if (ws->reader && ws_reader_is_at_rest(ws->reader))
        drop_reader(ws);
    leave(ws);
}

static void let_read_on(struct ws *ws)
{
    if (!ws->held || ws_output_waiting(&ws->output) > PONG_BYTES_MAX / 2)
        return;
    ws->held = false;
    channel_wake(ws->channel);
}

static void tell_room(struct ws *ws)
{
    if (!ws->wants_room || ws_output_waiting(&ws->output) > ws->buffer / 2)
        return;
    ws->wants_room = false;
    if (ws->user->on_room)
        ws->user->on_room(ws);
}

static void on_room(struct channel *channel)
{
    struct ws *ws = channel->arg;

    enter(ws);
    ws_output_flush(&ws->output, channel);
    if (ws->state == WS_ENDING)
        end_if_sent(ws);
    else
        let_read_on(ws);
    if (ws->state == WS_OPEN)
        tell_room(ws);
    leave(ws);
}

static void on_gone(struct channel *channel, enum gone_why why)
{
    struct ws *ws = channel->arg;

    enter(ws);
    if (ws->state != WS_ENDING)
        note_end(ws, WS_CODE_ABNORMAL, STR(""));
    finish(ws);
    leave(ws);
}

static const struct channel_user channel_user = { on_bytes, on_room, on_gone };

/* --- heartbeats -------------------------------------------------------------------------------------------- */

static void ping_if_quiet(struct ws *ws)
{
    if (ws_output_waiting(&ws->output))
        return;
    ws->pinged = true;
    send_control(ws, WS_OP_PING, STR(""));
}

/* Only where it is we who wait: a socket that we do not read is silent by our doing, and one with
 * output that waits is under the channel's own limit. */
static void on_beat(struct ws_due *due)
{
    struct ws *ws = container_of(due, struct ws, due);

    enter(ws);
    if (ws->pinged && may_read(ws)) {
        cut(ws, WS_CODE_ABNORMAL);
    } else {
        ping_if_quiet(ws);
        limit_start(&due->limit, &ws->beat->queue);
    }
    leave(ws);
}

/* --- for the user ------------------------------------------------------------------------------------------- */

static size_t deflate_max_of(const struct ws_options *options)
{
    if (!options->deflate)
        return 0;
    if (!options->deflate_bits || options->deflate_bits >= DEFLATE_BITS)
        return SIZE_MAX;
    return (size_t)1 << options->deflate_bits; /* nothing in it can point farther back */
}

static void apply(struct ws *ws, const struct ws_options *options)
{
    uint64_t bytes_max = UINT64_C(1) << BYTES_MAX_SHIFT;

    ws->client      = options->client;
    ws->buffer      = options->buffer;
    ws->fragment    = options->fragment;
    ws->deflate_max = deflate_max_of(options);
    ws->rules       = (struct ws_rules){
              .limit   = options->limit < bytes_max ? options->limit : bytes_max,
              .masked  = !options->client,
              .deflate = options->deflate,
    };
}

int ws_open(struct ws **out, struct ws_shared *shared, struct channel *channel,
            const struct ws_options *options, const struct ws_user *user, void *arg)
{
    struct ws *ws = calloc(1, sizeof(*ws));

    if (!ws)
        return WS_MEMORY;
    ws->shared  = shared;
    ws->channel = channel;
    ws->user    = user;
    ws->arg     = arg;
    ws_output_init(&ws->output);
    limit_init(&ws->due.limit);
    ws->due.fn = on_beat;
    ws->beat   = ws_shared_beat(shared, options->heartbeat_ms);
    apply(ws, options);
    shared->counts.sockets++;
    sign_of_life(ws);
    channel_take(channel, &channel_user, ws);
    *out = ws;
    return 0;
}

void *ws_arg(const struct ws *ws)
{
    return ws->arg;
}

bool ws_is_open(const struct ws *ws)
{
    return ws->state == WS_OPEN;
}

size_t ws_pending(const struct ws *ws)
{
    size_t channel = ws->channel ? channel_pending(ws->channel) : 0;

    return channel + ws_output_waiting(&ws->output);
}

/* GONE, WAIT, or 0: LEN bytes may be sent. */
static int ask_room(struct ws *ws, size_t len)
{
    size_t waiting = ws_output_waiting(&ws->output);

    if (ws->state != WS_OPEN || ws->failed)
        return WS_GONE;
    if (waiting && (waiting >= ws->buffer || len > ws->buffer - waiting)) {
        ws->wants_room = true;
        return WS_WAIT;
    }
    return 0;
}

/* PAYLOAD as one frame or several; RSV1 stands on the first. */
static int send_parts(struct ws *ws, struct ws_frame_head head, struct str payload)
{
    int rc = 0;

    while (rc == 0 && !head.last) {
        bool cuts = ws->fragment && payload.len > ws->fragment;

        head.last = !cuts;
        rc        = send_frame(ws, head, cuts ? str_make(payload.at, ws->fragment) : payload);
        if (cuts)
            payload = str_from(payload, ws->fragment);
        head = (struct ws_frame_head){ .opcode = WS_OP_CONTINUATION, .last = head.last };
    }
    return rc;
}

static bool is_worth_packing(const struct ws *ws, size_t len)
{
    return len >= WS_DEFLATE_BYTES_MIN && len <= ws->deflate_max;
}

static int send_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct ws_deflater  *deflater = &ws->shared->deflater;
    struct ws_frame_head head     = { .opcode = kind == WS_TEXT ? WS_OP_TEXT : WS_OP_BINARY };
    struct str           packed;
    int                  rc;

    head.deflated = is_worth_packing(ws, data.len) && ws_pack(deflater, data, &packed);
    rc            = send_parts(ws, head, head.deflated ? packed : data);
    ws_pack_end(deflater);
    if (rc == 0)
        ws->shared->counts.messages_out++;
    return rc;
}

int ws_send(struct ws *ws, enum ws_kind kind, struct str data)
{
    int rc = ask_room(ws, data.len);

    if (rc == 0 && kind == WS_TEXT && !ws_utf8_is_text(data))
        rc = WS_NOT_TEXT;
    return rc == 0 ? send_message(ws, kind, data) : rc;
}

int ws_send_frame(struct ws *ws, struct ws_frame *frame)
{
    struct str   data = ws_frame_data(frame), bytes;
    struct iovec piece;
    int          rc = ask_room(ws, data.len);

    if (rc != 0)
        return rc;
    if (ws->client)
        return send_message(ws, ws_frame_kind(frame), data);
    bytes = ws_frame_bytes(frame, is_worth_packing(ws, data.len));
    piece = (struct iovec){ (void *)bytes.at, bytes.len };
    if (!ws_output_put(&ws->output, ws->channel, &piece, 1))
        return fail_for_memory(ws);
    ws->shared->counts.messages_out++;
    return 0;
}

void ws_next(struct ws *ws)
{
    ws->busy = false;
    if (ws->channel && !ws->reading)
        channel_wake(ws->channel);
}

/* Where a character ends. */
static struct str cut_reason(struct str reason)
{
    size_t len = reason.len;

    if (len > WS_REASON_BYTES_MAX)
        for (len = WS_REASON_BYTES_MAX; len && ((unsigned char)reason.at[len] & 0xc0) == 0x80;)
            len--;
    return str_make(reason.at, len);
}

void ws_close(struct ws *ws, unsigned code, struct str reason)
{
    assert(code == 0 || ws_code_may_be_sent(code));
    if (ws->state != WS_OPEN)
        return;
    reason = code ? cut_reason(reason) : STR_NONE;
    code   = code ? code : WS_CODE_NONE;
    note_end(ws, code, reason);
    send_close(ws, code, reason);
    ws->state = WS_CLOSING;
    start_closing_limit(ws);
    channel_wake(ws->channel);
}

void ws_abort(struct ws *ws)
{
    if (ws->state == WS_OVER)
        return;
    channel_abort(ws->channel);
    ws->channel = NULL;
    ws->state   = WS_OVER;
    if (!ws->in_event)
        ws_free(ws);
}
