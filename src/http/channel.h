/* http/channel.h - bytes both ways, once an exchange was upgraded (RFC 9110, 7.8; RFC 8441).
 *
 * Two sides hold it: the WIRE that carries it (an HTTP/1 connection, an HTTP/2 stream, memory in
 * srv.test) and the USER (ws/ws.h, or a relay). Calls go down and return; events go up from the
 * loop's turn alone. It belongs to one worker's thread.
 *
 * The user lets go by channel_end() or channel_abort(). If the wire goes first, on_gone() is the
 * last event, and the channel is no more once it has returned. */
#ifndef HTTP_CHANNEL_H
#define HTTP_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/str.h"
#include "http/exchange.h"

struct channel;

/* What channel_fill() finds. */
enum channel_reading {
    CHANNEL_BYTES,   /* more than before: see channel_rest() */
    CHANNEL_NOTHING, /* not now: on_bytes() tells when */
    CHANNEL_END,     /* the peer has ended its direction; nothing comes behind the rest */
};

enum { CHANNEL_WAIT = -1 }; /* what channel_write() returns besides a number of bytes */

/* NULL for what does not interest. */
struct channel_user {
    /* There is something to read, or the end. Comes once for all that has come: who leaves bytes
     * asks for it again by channel_wake(). May end or abort the channel. */
    void (*on_bytes)(struct channel *channel);
    /* A write that met WAIT may go on. */
    void (*on_room)(struct channel *channel);
    /* The peer has reset, does not take what is written, or the server closes. */
    void (*on_gone)(struct channel *channel, enum gone_why why);
};

struct channel_wire {
    enum channel_reading (*fill)(struct channel *channel);
    struct str (*rest)(const struct channel *channel);
    void (*consume)(struct channel *channel, size_t bytes);
    ssize_t (*write)(struct channel *channel, const struct iovec *iov, int count);
    size_t (*pending)(const struct channel *channel);
    void (*wake)(struct channel *channel);
    void (*end)(struct channel *channel);
    void (*abort)(struct channel *channel);
};

/* Made by the wire, whose struct begins with it. */
struct channel {
    const struct channel_wire *wire;
    const struct channel_user *user; /* NULL: not taken yet, or let go */
    void                      *arg;  /* the user's */
};

/* --- for the user; not after it let go ------------------------------------------------------------
 *
 * Reading (fill, rest, consume) is for on_bytes() alone, since wires share their buffers: who wants to
 * read at another time asks for that event by channel_wake(). Writing is for any time. */

/* Events come from here on: on_bytes() in the next turn, if anything lies there already. */
static inline void channel_take(struct channel *channel, const struct channel_user *user, void *arg)
{
    channel->user = user;
    channel->arg  = arg;
    channel->wire->wake(channel);
}

/* Reads once, behind the rest. What is never filled is never read: that is how a user holds its
 * peer up. */
static inline enum channel_reading channel_fill(struct channel *channel)
{
    return channel->wire->fill(channel);
}

/* What was read and not consumed; valid until the next call of this channel but consume(). */
static inline struct str channel_rest(const struct channel *channel)
{
    return channel->wire->rest(channel);
}

static inline void channel_consume(struct channel *channel, size_t bytes)
{
    channel->wire->consume(channel, bytes);
}

/* Copies as much as there is room for (64 KiB in all), from the front: the number of bytes, or
 * CHANNEL_WAIT where there is no room at all. All that is written in a turn leaves together. */
static inline ssize_t channel_write(struct channel *channel, const struct iovec *iov, int count)
{
    return channel->wire->write(channel, iov, count);
}

/* Bytes that were written and have not gone to the kernel. */
static inline size_t channel_pending(const struct channel *channel)
{
    return channel->wire->pending(channel);
}

/* on_bytes() comes in a turn, as if something had arrived. */
static inline void channel_wake(struct channel *channel)
{
    channel->wire->wake(channel);
}

/* What was written goes out, then our direction ends, and the peer has a second to end its own. The
 * user has let go: no event comes any more. */
static inline void channel_end(struct channel *channel)
{
    channel->wire->end(channel);
}

/* Cut at once; the peer sees a reset. The user has let go. */
static inline void channel_abort(struct channel *channel)
{
    channel->wire->abort(channel);
}

/* --- for the wire: what its user hears, if it has one and wants to ----------------------------------- */

static inline void channel_tell_bytes(struct channel *channel)
{
    if (channel->user && channel->user->on_bytes)
        channel->user->on_bytes(channel);
}

static inline void channel_tell_room(struct channel *channel)
{
    if (channel->user && channel->user->on_room)
        channel->user->on_room(channel);
}

/* The last event. */
static inline void channel_tell_gone(struct channel *channel, enum gone_why why)
{
    const struct channel_user *user = channel->user;

    channel->user = NULL;
    if (user && user->on_gone)
        user->on_gone(channel, why);
}

#endif
