#include "http/stream_channel.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/iov.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/channel.h"
#include "net/stream.h"

enum {
    READ_BYTES       = 16 * 1024, /* at once */
    HIGH_BYTES       = 64 * 1024, /* of what is not read, and of what is not sent */
    LOW_BYTES        = 16 * 1024, /* writing goes on */
    LINGER_BYTES_MAX = 4 * 1024 * 1024,
};

struct stream_channel {
    struct channel    base;
    struct stream    *stream; /* lent */
    struct later      turn;
    struct timer      limit;   /* runs while something waits to be sent, and while it lingers */
    struct buf        in;      /* read, not consumed */
    size_t            used;    /* of it, from the front */
    struct buf        out;     /* to be sent */
    size_t            sent;    /* of it, from the front */
    size_t            dropped; /* while it lingers */
    stream_channel_fn on_released;
    void             *arg;
    bool              running;    /* in its turn: asking for one is asking for another */
    bool              woken;      /* on_bytes() was asked for */
    bool              wants_room; /* a write met WAIT */
    bool              eof;        /* nothing comes any more */
    bool              ends;       /* the user has let go: what waits goes out */
    bool              cut;        /* and that will not */
    bool              lingers;    /* our direction has ended */
};

static struct stream_channel *of(const struct channel *channel)
{
    return container_of(channel, struct stream_channel, base);
}

static size_t waiting(const struct stream_channel *ours)
{
    return ours->out.len - ours->sent;
}

/* --- reading ------------------------------------------------------------------------------------- */

static struct str wire_rest(const struct channel *channel)
{
    return str_from(buf_str(&of(channel)->in), of(channel)->used);
}

static void wire_consume(struct channel *channel, size_t bytes)
{
    struct stream_channel *ours = of(channel);

    ours->used += bytes;
    if (ours->used == ours->in.len) {
        buf_clear(&ours->in);
        ours->used = 0;
    }
}

static enum channel_reading end_reading(struct stream_channel *ours)
{
    ours->eof = true;
    return CHANNEL_END;
}

/* What the last event may have hidden is looked for once. */
static bool can_read(struct stream *stream)
{
    if (!stream->can_read)
        stream_read_again(stream);
    return stream->can_read;
}

static enum channel_reading wire_fill(struct channel *channel)
{
    struct stream_channel *ours = of(channel);
    ssize_t                n;
    char                  *to;

    if (ours->eof)
        return CHANNEL_END;
    if (!can_read(ours->stream) || ours->in.len - ours->used >= HIGH_BYTES)
        return CHANNEL_NOTHING;
    buf_consume(&ours->in, ours->used);
    ours->used = 0;
    to         = buf_reserve(&ours->in, READ_BYTES);
    if (!to)
        return end_reading(ours);
    n = stream_read(ours->stream, to, READ_BYTES);
    if (n == STREAM_WAIT)
        return CHANNEL_NOTHING;
    if (n < 0)
        return end_reading(ours);
    ours->in.len += (size_t)n;
    return CHANNEL_BYTES;
}

/* --- writing ------------------------------------------------------------------------------------- */

/* What its own event asks for comes in the next round of the loop. */
static void ask_turn(struct stream_channel *ours)
{
    loop_later(ours->stream->loop, &ours->turn);
}

static ssize_t wire_write(struct channel *channel, const struct iovec *iov, int count)
{
    struct stream_channel *ours = of(channel);
    size_t                 room = waiting(ours) < HIGH_BYTES ? HIGH_BYTES - waiting(ours) : 0;
    size_t                 taken;

    if (!room) {
        ours->wants_room = true;
        return CHANNEL_WAIT;
    }
    taken = iov_copy(&ours->out, iov, count, 0, room);
    if (!ours->running)
        ask_turn(ours);
    return (ssize_t)taken;
}

static size_t wire_pending(const struct channel *channel)
{
    return waiting(of(channel));
}

static void wire_wake(struct channel *channel)
{
    of(channel)->woken = true;
    ask_turn(of(channel));
}

/* Progress starts the time limit anew. */
static void note_sent(struct stream_channel *ours, size_t bytes)
{
    ours->sent += bytes;
    if (waiting(ours) == 0) {
        buf_fini(&ours->out);
        ours->sent = 0;
        timer_stop(&ours->limit, ours->stream->loop);
    } else if (bytes || !timer_is_running(&ours->limit)) {
        timer_start(&ours->limit, ours->stream->loop, STREAM_CHANNEL_WRITE_MS);
    }
}

static void flush(struct stream_channel *ours)
{
    struct iovec piece = { ours->out.at + ours->sent, waiting(ours) };
    ssize_t      n;

    if (!piece.iov_len)
        return;
    n = ours->stream->can_write ? stream_writev(ours->stream, &piece, 1) : STREAM_WAIT;
    if (n != STREAM_FAIL)
        note_sent(ours, n > 0 ? (size_t)n : 0);
}

/* --- the end -------------------------------------------------------------------------------------- */

static void let_go(struct channel *channel)
{
    channel->user      = NULL;
    of(channel)->ends  = true;
    of(channel)->woken = false;
    ask_turn(of(channel));
}

static void wire_end(struct channel *channel)
{
    let_go(channel);
}

static void wire_abort(struct channel *channel)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(of(channel)->stream->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    of(channel)->cut = true;
    let_go(channel);
}

static void free_channel(struct stream_channel *ours)
{
    later_cancel(&ours->turn);
    timer_stop(&ours->limit, ours->stream->loop);
    buf_fini(&ours->in);
    buf_fini(&ours->out);
    free(ours);
}

static void release(struct stream_channel *ours, enum gone_why why)
{
    struct stream    *stream      = ours->stream;
    stream_channel_fn on_released = ours->on_released;
    void             *arg         = ours->arg;

    channel_tell_gone(&ours->base, why);
    free_channel(ours);
    on_released(stream, arg);
}

/* Drops what still comes; closing with it unread would be a reset, which may take away what we
 * sent. True: there is nothing more to wait for. */
static bool linger(struct stream_channel *ours)
{
    if (!ours->lingers) {
        ours->lingers = true;
        stream_shut(ours->stream);
        timer_start(&ours->limit, ours->stream->loop, STREAM_CHANNEL_LINGER_MS);
    }
    while (!ours->eof && ours->dropped < LINGER_BYTES_MAX) {
        ours->dropped += wire_rest(&ours->base).len;
        wire_consume(&ours->base, wire_rest(&ours->base).len);
        if (wire_fill(&ours->base) == CHANNEL_NOTHING)
            return false;
    }
    return true;
}

/* --- running --------------------------------------------------------------------------------------- */

static bool has_failed(const struct stream_channel *ours)
{
    return ours->stream->saw_err || ours->stream->error || ours->in.failed || ours->out.failed;
}

static bool has_room(const struct stream_channel *ours)
{
    return ours->base.user && ours->wants_room && waiting(ours) <= LOW_BYTES;
}

static void tell_room(struct stream_channel *ours)
{
    if (!has_room(ours))
        return;
    ours->wants_room = false;
    channel_tell_room(&ours->base);
}

static void tell_bytes(struct stream_channel *ours)
{
    bool has = ours->woken || ours->stream->can_read || wire_rest(&ours->base).len > 0;

    if (!ours->base.user || (!has && !ours->eof))
        return;
    ours->woken = false;
    channel_tell_bytes(&ours->base);
}

/* Those that wait keep no buffer. */
static void rest(struct stream_channel *ours)
{
    if (ours->in.len == 0)
        buf_fini(&ours->in);
}

static void run(struct stream_channel *ours)
{
    ours->running = true;
    flush(ours);
    tell_room(ours);
    tell_bytes(ours);
    flush(ours);
    if (has_room(ours)) /* the kernel took all at once, and will tell of nothing */
        ask_turn(ours);
    ours->running = false;
    if (ours->cut || (has_failed(ours) && (ours->ends || ours->base.user))) {
        release(ours, GONE_CLIENT);
        return;
    }
    if (ours->ends && waiting(ours) == 0 && linger(ours)) {
        release(ours, GONE_CLIENT);
        return;
    }
    rest(ours);
}

static void on_turn(struct later *turn)
{
    run(container_of(turn, struct stream_channel, turn));
}

static void on_event(struct stream *stream, void *arg)
{
    run(arg);
}

static void on_limit(struct timer *timer)
{
    release(container_of(timer, struct stream_channel, limit), GONE_TIMEOUT);
}

/* --- life -------------------------------------------------------------------------------------------- */

struct channel *stream_channel_new(struct stream *stream, struct str early,
                                   stream_channel_fn on_released, void *arg)
{
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
    struct stream_channel *ours = calloc(1, sizeof(*ours));

    if (!ours)
        return NULL;
    ours->base.wire   = &wire;
    ours->stream      = stream;
    ours->on_released = on_released;
    ours->arg         = arg;
    buf_init(&ours->in, SIZE_MAX);
    buf_init(&ours->out, SIZE_MAX);
    buf_add_str(&ours->in, early);
    if (ours->in.failed) {
        free(ours);
        return NULL;
    }
    later_init(&ours->turn, on_turn);
    timer_init(&ours->limit, on_limit);
    stream->on_event = on_event;
    stream->arg      = ours;
    return &ours->base;
}

void stream_channel_close(struct channel *channel)
{
    channel_tell_gone(channel, GONE_SHUTDOWN);
    free_channel(of(channel));
}
