/* The wire's side of a channel. Its user lets go of it by ending or cutting it, and it is freed by
 * that: the connection goes on alone to its end, as after a last answer. */
#include "http/h1_channel.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/iov.h"
#include "http/channel.h"
#include "http/h1_answered.h"

enum { PIECES_MAX = 16 }; /* of one write; what is in more is taken by the next */

struct h1_channel {
    struct channel base;
    struct conn   *conn;
    bool           wants_room; /* a write met WAIT */
    bool           woken;      /* on_bytes() was asked for */
    bool           let_go;     /* by its user, before the exchange has ended */
};

static struct h1_channel *of(const struct channel *channel)
{
    return container_of(channel, struct h1_channel, base);
}

/* --- reading -------------------------------------------------------------------------------------- */

static enum channel_reading wire_fill(struct channel *channel)
{
    struct conn *conn = of(channel)->conn;

    if (conn_rest(conn).len >= CONN_HIGH_BYTES)
        return CHANNEL_NOTHING;
    switch (conn_fill(conn, CONN_BODY_READ_BYTES)) {
    case FILL_BYTES: conn->progress = true; return CHANNEL_BYTES;
    case FILL_NOTHING: return CHANNEL_NOTHING;
    case FILL_END: break;
    }
    return CHANNEL_END;
}

static struct str wire_rest(const struct channel *channel)
{
    return conn_rest(of(channel)->conn);
}

static void wire_consume(struct channel *channel, size_t bytes)
{
    conn_consume(of(channel)->conn, bytes);
}

/* --- writing -------------------------------------------------------------------------------------- */

static ssize_t wire_write(struct channel *channel, const struct iovec *iov, int count)
{
    struct h1_channel *ours    = of(channel);
    size_t             pending = conn_pending(ours->conn), taken;
    size_t             room    = pending < CONN_HIGH_BYTES ? CONN_HIGH_BYTES - pending : 0;
    struct iovec       pieces[PIECES_MAX];

    if (!room) {
        ours->wants_room = true;
        return CHANNEL_WAIT;
    }
    conn_write(ours->conn, pieces, iov_cut(pieces, PIECES_MAX, iov, count, room, &taken));
    conn_wake(ours->conn);
    return (ssize_t)taken;
}

static size_t wire_pending(const struct channel *channel)
{
    return conn_pending(of(channel)->conn);
}

/* From its own event: in the next turn, after the other connections. */
static void wire_wake(struct channel *channel)
{
    struct conn *conn = of(channel)->conn;

    of(channel)->woken = true;
    if (conn->running)
        conn->again = true;
    else
        conn_wake(conn);
}

/* --- the end --------------------------------------------------------------------------------------- */

/* The connection, which is its channel's no more. */
static struct conn *let_go(struct channel *channel)
{
    struct conn *conn = of(channel)->conn;

    channel->user = NULL;
    conn->state   = CONN_CLOSING;
    if (conn->speech == CONN_H1_CHANNEL) {
        conn->channel = NULL;
        free(of(channel));
    } else {
        of(channel)->let_go = true; /* the exchange owns it still */
    }
    return conn;
}

static void wire_end(struct channel *channel)
{
    conn_wake(let_go(channel));
}

static void wire_abort(struct channel *channel)
{
    struct conn *conn = let_go(channel);

    conn->must_reset = conn->failed = true;
    conn_wake(conn);
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

struct channel *h1_channel_new(struct conn *conn)
{
    struct h1_channel *ours = malloc(sizeof(*ours));

    if (!ours)
        return NULL;
    *ours = (struct h1_channel){ .base.wire = &wire, .conn = conn };
    return &ours->base;
}

void h1_channel_begin(struct conn *conn, struct channel *channel)
{
    bool let_go = of(channel)->let_go;

    conn->speech  = CONN_H1_CHANNEL;
    conn->channel = let_go ? NULL : channel;
    if (let_go)
        free(of(channel));
}

void h1_channel_lost(struct channel *channel, enum gone_why why)
{
    channel_tell_gone(channel, why);
    free(of(channel));
}

/* --- running ---------------------------------------------------------------------------------------- */

static void tell_bytes(struct conn *conn)
{
    struct channel *channel = conn->channel;
    bool            has     = conn_rest(conn).len || conn->stream.can_read || conn->eof;

    if (!channel || (!has && !of(channel)->woken))
        return;
    of(channel)->woken = false;
    channel_tell_bytes(channel);
}

static void tell_room(struct conn *conn)
{
    struct channel *channel = conn->channel;

    if (!channel || !of(channel)->wants_room || conn_pending(conn) > CONN_LOW_BYTES)
        return;
    of(channel)->wants_room = false;
    channel_tell_room(channel);
}

/* What room was made for in the first flush and what was read asks for goes out with the second. */
static void run(struct conn *conn)
{
    h1_answered_flush(conn);
    tell_room(conn);
    tell_bytes(conn);
    h1_answered_flush(conn);
}

static bool is_busy(const struct conn *conn)
{
    return conn->channel != NULL;
}

static enum conn_wait waits_for(const struct conn *conn)
{
    return CONN_WAIT_CHANNEL;
}

/* Neither is ever waited for. */
static void is_never_late(struct conn *conn)
{
}

static void lost(struct conn *conn, enum gone_why why)
{
    struct channel *channel = conn->channel;

    conn->channel = NULL;
    h1_answered_lost(conn, why);
    if (channel)
        h1_channel_lost(channel, why);
}

const struct conn_protocol h1_channel_protocol = {
    .run          = run,
    .is_busy      = is_busy,
    .waits_for    = waits_for,
    .head_is_late = is_never_late,
    .body_is_late = is_never_late,
    .lost         = lost,
};
