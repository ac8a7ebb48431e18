/* tests/support/memory_channel.h - two channels (http/channel.h) that are each other's peer, in
 * memory: what one side writes the other reads, in pieces of any size, by the turns of a loop.
 *
 * A wire counts what its user owes: fills only in on_bytes(), nothing after it has let go. */
#ifndef TESTS_SUPPORT_MEMORY_CHANNEL_H
#define TESTS_SUPPORT_MEMORY_CHANNEL_H

#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "ev/loop.h"
#include "http/channel.h"

enum { MEMORY_CHANNEL_ROOM = 64 * 1024, MEMORY_CHANNEL_LOW = 16 * 1024 };

struct memory_channel {
    struct channel         base;
    struct memory_channel *peer; /* NULL: gone */
    struct loop           *loop;
    struct later           turn;
    struct buf             in;      /* written by the peer */
    size_t                 visible; /* of them: read */
    size_t                 piece;   /* a fill reads at most so much; 0: all */
    size_t (*next_piece)(void);     /* or as much as this says */
    size_t   room;                  /* for what the peer writes */
    uint64_t written;               /* by our user */
    unsigned fills;
    bool     peer_ended, peer_gone; /* by end, by abort */
    bool     told_bytes, wants_room, has_room;
    bool     in_bytes;
    bool     ended, aborted; /* our user has let go */
};

static struct memory_channel *memory_channel_of(const struct channel *channel)
{
    return container_of(channel, struct memory_channel, base);
}

static enum channel_reading memory_channel_fill(struct channel *channel)
{
    struct memory_channel *ours = memory_channel_of(channel);
    size_t                 left = ours->in.len - ours->visible;
    size_t                 most = ours->next_piece ? ours->next_piece() : ours->piece;

    if (!ours->in_bytes)
        abort();
    ours->fills++;
    if (!left)
        return ours->peer_ended ? CHANNEL_END : CHANNEL_NOTHING;
    ours->visible += most && most < left ? most : left;
    return CHANNEL_BYTES;
}

static struct str memory_channel_rest(const struct channel *channel)
{
    return str_make(memory_channel_of(channel)->in.at, memory_channel_of(channel)->visible);
}

static void memory_channel_consume(struct channel *channel, size_t bytes)
{
    struct memory_channel *ours = memory_channel_of(channel);

    buf_consume(&ours->in, bytes);
    ours->visible -= bytes;
    if (!ours->in.len)
        buf_fini(&ours->in);
    if (ours->peer && ours->peer->wants_room && ours->in.len <= MEMORY_CHANNEL_LOW) {
        ours->peer->has_room = true;
        loop_later(ours->loop, &ours->peer->turn);
    }
}

static void memory_channel_tell(struct memory_channel *ours)
{
    ours->told_bytes = true;
    if (ours->base.user)
        loop_later(ours->loop, &ours->turn);
}

static ssize_t memory_channel_write(struct channel *channel, const struct iovec *iov, int count)
{
    struct memory_channel *ours = memory_channel_of(channel), *peer = ours->peer;
    size_t                 taken = 0;

    if (ours->ended || ours->aborted)
        abort();
    if (peer && peer->in.len >= peer->room) {
        ours->wants_room = true;
        return CHANNEL_WAIT;
    }
    for (int i = 0; i < count; i++) {
        size_t room = peer && peer->in.len < peer->room ? peer->room - peer->in.len : 0;
        size_t len  = iov[i].iov_len < room || !peer ? iov[i].iov_len : room;

        if (peer)
            buf_add(&peer->in, iov[i].iov_base, len);
        taken += len;
    }
    ours->written += taken;
    if (peer)
        memory_channel_tell(peer);
    return (ssize_t)taken;
}

static size_t memory_channel_pending(const struct channel *channel)
{
    return 0;
}

static void memory_channel_wake(struct channel *channel)
{
    memory_channel_tell(memory_channel_of(channel));
}

static void memory_channel_let_go(struct memory_channel *ours)
{
    ours->base.user = NULL;
    later_cancel(&ours->turn);
}

static void memory_channel_end(struct channel *channel)
{
    struct memory_channel *ours = memory_channel_of(channel);

    ours->ended = true;
    memory_channel_let_go(ours);
    if (!ours->peer)
        return;
    ours->peer->peer_ended = true;
    memory_channel_tell(ours->peer);
}

static void memory_channel_abort(struct channel *channel)
{
    struct memory_channel *ours = memory_channel_of(channel);

    ours->aborted = true;
    memory_channel_let_go(ours);
    if (!ours->peer)
        return;
    ours->peer->peer_gone = true;
    memory_channel_tell(ours->peer);
}

static void memory_channel_turn(struct later *turn)
{
    struct memory_channel     *ours = container_of(turn, struct memory_channel, turn);
    const struct channel_user *user = ours->base.user;

    if (user && ours->peer_gone) {
        ours->base.user = NULL;
        user->on_gone(&ours->base, GONE_CLIENT);
        return;
    }
    if (user && ours->has_room) {
        ours->has_room = ours->wants_room = false;
        user->on_room(&ours->base);
    }
    user = ours->base.user;
    if (user && ours->told_bytes) {
        ours->told_bytes = false;
        ours->in_bytes   = true;
        user->on_bytes(&ours->base);
        ours->in_bytes = false;
    }
}

static void memory_channel_init(struct memory_channel *ours, struct loop *loop,
                                struct memory_channel *peer)
{
    static const struct channel_wire wire = {
        memory_channel_fill,    memory_channel_rest, memory_channel_consume, memory_channel_write,
        memory_channel_pending, memory_channel_wake, memory_channel_end,     memory_channel_abort,
    };

    *ours = (struct memory_channel){
        .base.wire = &wire, .peer = peer, .loop = loop, .room = MEMORY_CHANNEL_ROOM
    };
    buf_init(&ours->in, SIZE_MAX);
    later_init(&ours->turn, memory_channel_turn);
}

static inline void memory_channel_pair(struct loop *loop, struct memory_channel *a,
                                       struct memory_channel *b)
{
    memory_channel_init(a, loop, b);
    memory_channel_init(b, loop, a);
}

/* One whose peer is the test: it feeds bytes, and finds in peer->in what was written. */
static inline void memory_channel_feed(struct memory_channel *to, struct str bytes)
{
    buf_add_str(&to->in, bytes);
    memory_channel_tell(to);
}

static inline void memory_channel_fini(struct memory_channel *ours)
{
    later_cancel(&ours->turn);
    buf_fini(&ours->in);
}

#endif
