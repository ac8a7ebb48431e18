#include "http/relay.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "http/channel.h"

enum { READS_A_TURN = 8 }; /* then others have theirs */

struct relay;

struct side {
    struct relay   *relay;
    struct channel *channel; /* NULL: let go */
    struct side    *other;
};

struct relay {
    struct side sides[2];
    relay_fn    on_over;
    void       *arg;
};

static void finish(struct relay *relay)
{
    relay->on_over(relay->arg);
    free(relay);
}

static void let_go(struct side *side, void (*how)(struct channel *channel))
{
    struct channel *channel = side->channel;

    side->channel = NULL;
    if (channel)
        how(channel);
}

static void end_both(struct relay *relay, void (*how)(struct channel *channel))
{
    let_go(&relay->sides[0], how);
    let_go(&relay->sides[1], how);
    finish(relay);
}

/* What was read goes on. True: all of it, so more may be read. */
static bool pass_rest(struct side *from)
{
    struct str rest = channel_rest(from->channel);

    while (rest.len) {
        struct iovec piece = { (void *)rest.at, rest.len };
        ssize_t      taken = channel_write(from->other->channel, &piece, 1);

        if (taken == CHANNEL_WAIT)
            return false;
        channel_consume(from->channel, (size_t)taken);
        rest = channel_rest(from->channel);
    }
    return true;
}

/* Until nothing is there, or the other side is full: its on_room() asks for more then. */
static void pass_on(struct side *from)
{
    for (unsigned reads = 0; pass_rest(from); reads++) {
        if (reads == READS_A_TURN) {
            channel_wake(from->channel);
            return;
        }
        switch (channel_fill(from->channel)) {
        case CHANNEL_BYTES: break;
        case CHANNEL_NOTHING: return;
        case CHANNEL_END:
            if (!channel_rest(from->channel).len)
                end_both(from->relay, channel_end);
            return;
        }
    }
}

static void on_bytes(struct channel *channel)
{
    pass_on(channel->arg);
}

static void on_room(struct channel *channel)
{
    struct side *side = channel->arg;

    channel_wake(side->other->channel);
}

static void on_gone(struct channel *channel, enum gone_why why)
{
    struct side *side = channel->arg;

    side->channel = NULL;
    end_both(side->relay, channel_abort);
}

static const struct channel_user USER = {
    .on_bytes = on_bytes,
    .on_room  = on_room,
    .on_gone  = on_gone,
};

bool relay_start(struct channel *one, struct channel *other, relay_fn on_over, void *arg)
{
    struct relay *relay = malloc(sizeof(*relay));

    if (!relay)
        return false;
    *relay = (struct relay){ .on_over = on_over, .arg = arg };
    for (int i = 0; i < 2; i++)
        relay->sides[i] = (struct side){ relay, i ? other : one, &relay->sides[1 - i] };
    channel_take(one, &USER, &relay->sides[0]);
    channel_take(other, &USER, &relay->sides[1]);
    return true;
}
