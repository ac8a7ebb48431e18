/* http/stream_channel.h - a channel (http/channel.h) over a stream of our own, plain or TLS: for
 * clients, whose handshake is over or is spoken by the channel itself.
 *
 * The stream is lent: its owner keeps its memory and its name, and has it back when the channel has
 * come to its end. One that waits holds no buffer. */
#ifndef HTTP_STREAM_CHANNEL_H
#define HTTP_STREAM_CHANNEL_H

#include "base/str.h"

struct channel;
struct stream;

enum {
    STREAM_CHANNEL_WRITE_MS  = 30 * 1000, /* without progress on what is written: gone */
    STREAM_CHANNEL_LINGER_MS = 1000,      /* for the peer's end, after ours */
};

/* The stream is its owner's again, who is to end it (stream_fini()): what was written has gone, or
 * cannot go. Comes once, from the loop's turn, and the channel is no more. */
typedef void (*stream_channel_fn)(struct stream *stream, void *arg);

/* STREAM's events are the channel's from here on. EARLY is copied: bytes that were read already,
 * behind a handshake's. NULL: no memory, and nothing was done. */
struct channel *stream_channel_new(struct stream *stream, struct str early,
                                   stream_channel_fn on_released, void *arg);

/* The owner cannot wait. The channel's user, if it has not let go, hears on_gone(GONE_SHUTDOWN) from
 * inside this call, so it is not for callbacks of its own; on_released() does not come. */
void stream_channel_close(struct channel *channel);

#endif
