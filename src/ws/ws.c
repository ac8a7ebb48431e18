/* A socket's events, and what its user calls.
 *
 * The rule that keeps it safe: only an event of the channel or of a time limit frees a socket, when
 * it has run to its end. What the user does meanwhile changes its state. */
#include "ws/ws.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "http/channel.h"
#include "ws/ws_end.h"
#include "ws/ws_impl.h"
#include "ws/ws_read.h"
#include "ws/ws_say.h"
#include "ws/ws_utf8.h"

enum {
    DEFLATE_BITS    = 15,
    BYTES_MAX_SHIFT = 30, /* no message is larger than 1 GiB, whatever the options say */
};

/* --- the channel's events -------------------------------------------------------------------------------- */

static void on_bytes(struct channel *channel)
{
    struct ws *ws = channel->arg;

    ws_enter(ws);
    ws->reading = true;
    if (ws->failed)
        ws_cut(ws, WS_CODE_ABNORMAL);
    ws_read_turn(ws);
    ws->reading = false;
    if (ws->reader && ws_reader_is_at_rest(ws->reader))
        ws_drop_reader(ws);
    ws_watch_pace(ws);
    ws_leave(ws);
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

    ws_enter(ws);
    ws_output_flush(&ws->output, channel);
    if (ws->state == WS_ENDING)
        ws_end_if_sent(ws);
    else
        ws_let_read_on(ws);
    if (ws->state == WS_OPEN)
        tell_room(ws);
    ws_leave(ws);
}

static void on_gone(struct channel *channel, enum gone_why why)
{
    struct ws *ws = channel->arg;

    ws_enter(ws);
    if (ws->state != WS_ENDING)
        ws_note_end(ws, WS_CODE_ABNORMAL, STR(""));
    ws_finish(ws);
    ws_leave(ws);
}

static const struct channel_user channel_user = { on_bytes, on_room, on_gone };

/* --- heartbeats -------------------------------------------------------------------------------------------- */

static void ping_if_quiet(struct ws *ws)
{
    if (ws_output_waiting(&ws->output))
        return;
    ws->pinged = true;
    ws_say_control(ws, WS_OP_PING, STR(""));
}

/* Only where it is we who wait: a socket that we do not read is silent by our doing, and one with
 * output that waits is under the channel's own limit. */
static void on_beat(struct ws_due *due)
{
    struct ws *ws = container_of(due, struct ws, due);

    ws_enter(ws);
    if (ws->pinged && ws_may_read(ws)) {
        ws_cut(ws, WS_CODE_ABNORMAL);
    } else {
        ping_if_quiet(ws);
        limit_start(&due->limit, &ws->beat->queue);
    }
    ws_leave(ws);
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
    ws->pace   = ws_shared_beat(shared, options->message_ms);
    apply(ws, options);
    shared->counts.sockets++;
    ws_sign_of_life(ws);
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

int ws_send(struct ws *ws, enum ws_kind kind, struct str data)
{
    int rc = ask_room(ws, data.len);

    if (rc == 0 && kind == WS_TEXT && !ws_utf8_is_text(data))
        rc = WS_NOT_TEXT;
    return rc == 0 ? ws_say_message(ws, kind, data) : rc;
}

int ws_send_frame(struct ws *ws, struct ws_frame *frame)
{
    int rc = ask_room(ws, ws_frame_data(frame).len);

    return rc == 0 ? ws_say_shared(ws, frame) : rc;
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
    ws_note_end(ws, code, reason);
    ws_say_close(ws, code, reason);
    ws->state = WS_CLOSING;
    ws_start_closing_limit(ws);
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
