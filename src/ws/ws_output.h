/* ws/ws_output.h - what a socket has to send and its channel did not take yet. Nothing is
 * allocated while the channel takes all. */
#ifndef WS_WS_OUTPUT_H
#define WS_WS_OUTPUT_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"

struct channel;

struct ws_output {
    struct buf bytes;
    size_t     sent; /* of them, from the front */
};

void ws_output_init(struct ws_output *output);
void ws_output_fini(struct ws_output *output);

static inline size_t ws_output_waiting(const struct ws_output *output)
{
    return output->bytes.len - output->sent;
}

/* Writes what CHANNEL takes and keeps the rest, behind what waits already. If anything waits, the
 * channel has said WAIT, and tells of room. False: no memory, and the peer will see a torn frame. */
bool ws_output_put(struct ws_output *output, struct channel *channel, const struct iovec *pieces,
                   int count);

/* There is room: what waits goes out, as far as it does. */
void ws_output_flush(struct ws_output *output, struct channel *channel);

#endif
