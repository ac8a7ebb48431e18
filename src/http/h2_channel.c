/* What comes lies in the exchange's body, and the window opens by what the user consumes. The memory is
 * the exchange's, which the stream keeps until both directions have ended. */
#include "http/h2_channel.h"

#include "base/arena.h"
#include "base/compiler.h"
#include "http/channel.h"
#include "http/conn.h"
#include "http/h2_send.h"

struct h2_channel {
    struct channel    base;
    struct h2_stream *stream;
    uint64_t          filled; /* of ex->body_bytes: the user knows of them */
    bool              woken;
};

static struct h2_stream *stream_of(const struct channel *channel)
{
    return container_of(channel, struct h2_channel, base)->stream;
}

static struct conn *conn_of(const struct channel *channel)
{
    return stream_of(channel)->h2->conn;
}

static void ask_for_turn(struct channel *channel)
{
    h2_stream_has_news(stream_of(channel));
    conn_wake(conn_of(channel));
}

/* --- reading -------------------------------------------------------------------------------------- */

static enum channel_reading wire_fill(struct channel *channel)
{
    struct h2_channel *ours   = container_of(channel, struct h2_channel, base);
    struct h2_stream  *stream = ours->stream;

    if (stream->ex->body_bytes > ours->filled) {
        ours->filled = stream->ex->body_bytes;
        return CHANNEL_BYTES;
    }
    return stream->peer_ended ? CHANNEL_END : CHANNEL_NOTHING;
}

static struct str wire_rest(const struct channel *channel)
{
    const struct exchange *ex = stream_of(channel)->ex;

    return str_from(buf_str(&ex->body), ex->body_taken);
}

static void wire_consume(struct channel *channel, size_t bytes)
{
    struct h2_stream *stream = stream_of(channel);

    stream->ex->body_taken += bytes;
    h2_send_window(stream, bytes);
    conn_wake(conn_of(channel));
}

/* --- writing -------------------------------------------------------------------------------------- */

static ssize_t wire_write(struct channel *channel, const struct iovec *iov, int count)
{
    ssize_t kept = h2_send_keep(stream_of(channel), iov, count);

    return kept < 0 ? CHANNEL_WAIT : kept;
}

static size_t wire_pending(const struct channel *channel)
{
    return (size_t)h2_send_pending(stream_of(channel)) + conn_pending(conn_of(channel));
}

static void wire_wake(struct channel *channel)
{
    container_of(channel, struct h2_channel, base)->woken = true;
    ask_for_turn(channel);
}

/* --- the end --------------------------------------------------------------------------------------- */

static void wire_end(struct channel *channel)
{
    struct h2_stream *stream = stream_of(channel);

    channel->user    = NULL;
    stream->complete = true;
    h2_send_more(stream);
    ask_for_turn(channel);
}

/* RFC 8441, 5: a TCP reset is CANCEL. */
static void wire_abort(struct channel *channel)
{
    struct h2_stream *stream = stream_of(channel);

    channel->user = NULL;
    if (!stream->closed && !stream->cut)
        h2_send_reset(stream, NGHTTP2_CANCEL);
    stream->cut = true;
    ask_for_turn(channel);
}

static const struct channel_wire wire = {
    .fill    = wire_fill,
    .rest    = wire_rest,
    .consume = wire_consume,
    .write   = wire_write,
    .pending = wire_pending,
    .wake    = wire_wake,
    .end     = wire_end,
    .abort   = wire_abort,
};

struct channel *h2_channel_new(struct h2_stream *stream)
{
    struct h2_channel *ours = arena_zalloc(&stream->ex->arena, sizeof(*ours));

    ours->base.wire = &wire;
    ours->stream    = stream;
    stream->channel = ours;
    h2_stream_has_news(stream);
    return &ours->base;
}

/* --- news --------------------------------------------------------------------------------------------- */

static void tell_room(struct h2_channel *ours)
{
    struct h2_stream *stream = ours->stream;

    if (!stream->wants_room || h2_send_pending(stream) > CONN_LOW_BYTES)
        return;
    stream->wants_room = false;
    channel_tell_room(&ours->base);
}

void h2_channel_tell(struct h2_stream *stream)
{
    struct h2_channel *ours = stream->channel;
    bool has = stream->has_data && (exchange_untaken(stream->ex) || stream->peer_ended);

    has              = has || ours->woken; /* who asks may keep bytes of its own */
    stream->has_data = ours->woken = false;
    tell_room(ours);
    if (has)
        channel_tell_bytes(&ours->base);
}

void h2_channel_lost(struct h2_stream *stream, enum gone_why why)
{
    channel_tell_gone(&stream->channel->base, why);
}
