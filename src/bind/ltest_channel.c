#include "bind/ltest_channel.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "ev/loop.h"
#include "http/channel.h"
#include "http/exchange.h"

enum {
    WAITING_BYTES = 64 * 1024, /* between the two, in each direction */
    LOW_BYTES     = 16 * 1024, /* of them when a writer that met WAIT goes on */
};

struct pair;

struct end {
    struct channel base;
    struct pair   *pair;
    struct end    *peer;
    struct buf     in;         /* what the peer has written */
    size_t         seen;       /* of it: handed to the user by fill() */
    bool           woken;      /* on_bytes() is due */
    bool           wants_room; /* a write met WAIT */
    bool           ended;      /* our user writes no more: it has let go */
    bool           cut;        /* and does not want what the peer has to say */
};

struct pair {
    struct loop *loop;
    struct later turn;
    struct end   ends[2];
    bool         running; /* on_turn() is at work, and frees it */
};

static struct end *of(const struct channel *channel)
{
    return container_of(channel, struct end, base);
}

static void take_turn(struct end *end)
{
    loop_later(end->pair->loop, &end->pair->turn);
}

static void tell(struct end *end)
{
    end->woken = true;
    take_turn(end);
}

/* --- reading -------------------------------------------------------------------------------------- */

static enum channel_reading wire_fill(struct channel *channel)
{
    struct end *end = of(channel);

    if (end->seen < end->in.len) {
        end->seen = end->in.len;
        return CHANNEL_BYTES;
    }
    return end->peer->ended ? CHANNEL_END : CHANNEL_NOTHING;
}

static struct str wire_rest(const struct channel *channel)
{
    return str_make(of(channel)->in.at, of(channel)->seen);
}

static void wire_consume(struct channel *channel, size_t bytes)
{
    struct end *end = of(channel);

    buf_consume(&end->in, bytes);
    end->seen -= bytes;
    if (end->peer->wants_room)
        take_turn(end);
}

/* --- writing -------------------------------------------------------------------------------------- */

static ssize_t wire_write(struct channel *channel, const struct iovec *iov, int count)
{
    struct end *end   = of(channel);
    struct buf *to    = &end->peer->in;
    size_t      taken = 0, room = to->len < WAITING_BYTES ? WAITING_BYTES - to->len : 0;

    if (!room) {
        end->wants_room = true;
        return CHANNEL_WAIT;
    }
    for (int i = 0; i < count && taken < room; i++) {
        size_t len = iov[i].iov_len < room - taken ? iov[i].iov_len : room - taken;

        if (!end->peer->ended)
            buf_add(to, iov[i].iov_base, len);
        taken += len;
    }
    tell(end->peer);
    return (ssize_t)taken;
}

static size_t wire_pending(const struct channel *channel)
{
    return 0;
}

static void wire_wake(struct channel *channel)
{
    tell(of(channel));
}

/* --- the end --------------------------------------------------------------------------------------- */

static void free_pair(struct pair *pair)
{
    later_cancel(&pair->turn);
    buf_fini(&pair->ends[0].in);
    buf_fini(&pair->ends[1].in);
    free(pair);
}

static void let_go(struct end *end, bool cut)
{
    end->base.user = NULL;
    end->ended     = true;
    end->cut       = cut;
    if (end->peer->ended && !end->pair->running)
        free_pair(end->pair);
    else
        tell(end->peer);
}

static void wire_end(struct channel *channel)
{
    let_go(of(channel), false);
}

static void wire_abort(struct channel *channel)
{
    let_go(of(channel), true);
}

static const struct channel_wire WIRE = {
    .fill    = wire_fill,
    .rest    = wire_rest,
    .consume = wire_consume,
    .write   = wire_write,
    .pending = wire_pending,
    .wake    = wire_wake,
    .end     = wire_end,
    .abort   = wire_abort,
};

/* --- its turn in the loop ---------------------------------------------------------------------------- */

static void tell_room(struct end *end)
{
    if (!end->wants_room || end->peer->in.len > LOW_BYTES)
        return;
    end->wants_room = false;
    channel_tell_room(&end->base);
}

static void tell_bytes(struct end *end)
{
    bool woken = end->woken;

    end->woken = false;
    if (woken)
        channel_tell_bytes(&end->base);
}

static void tell_gone(struct end *end)
{
    if (!end->peer->cut || !end->base.user)
        return;
    end->ended = true;
    channel_tell_gone(&end->base, GONE_CLIENT);
}

static void on_turn(struct later *turn)
{
    struct pair *pair = container_of(turn, struct pair, turn);

    pair->running = true;
    for (int i = 0; i < 2; i++) {
        tell_gone(&pair->ends[i]);
        tell_room(&pair->ends[i]);
        tell_bytes(&pair->ends[i]);
    }
    pair->running = false;
    if (pair->ends[0].ended && pair->ends[1].ended)
        free_pair(pair);
}

bool ltest_channel_pair(struct loop *loop, struct channel **one, struct channel **other)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    if (!pair)
        return false;
    pair->loop = loop;
    later_init(&pair->turn, on_turn);
    for (int i = 0; i < 2; i++) {
        struct end *end = &pair->ends[i];

        end->base.wire = &WIRE;
        end->pair      = pair;
        end->peer      = &pair->ends[1 - i];
        buf_init(&end->in, WAITING_BYTES);
    }
    *one   = &pair->ends[0].base;
    *other = &pair->ends[1].base;
    return true;
}
