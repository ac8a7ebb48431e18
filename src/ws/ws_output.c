#include "ws/ws_output.h"

#include "http/channel.h"

void ws_output_init(struct ws_output *output)
{
    buf_init(&output->bytes, SIZE_MAX);
    output->sent = 0;
}

void ws_output_fini(struct ws_output *output)
{
    buf_fini(&output->bytes);
    output->sent = 0;
}

/* Writes until CHANNEL says WAIT, so that it tells of room. True: all of PIECE went. */
static bool write_piece(struct channel *channel, struct iovec *piece)
{
    while (piece->iov_len) {
        ssize_t taken = channel_write(channel, piece, 1);

        if (taken == CHANNEL_WAIT)
            return false;
        piece->iov_base = (char *)piece->iov_base + taken;
        piece->iov_len -= (size_t)taken;
    }
    return true;
}

/* What was sent is cut off the front when that is more than what waits. */
static void keep(struct ws_output *output, struct iovec piece)
{
    if (output->sent > ws_output_waiting(output)) {
        buf_consume(&output->bytes, output->sent);
        output->sent = 0;
    }
    buf_add(&output->bytes, piece.iov_base, piece.iov_len);
}

bool ws_output_put(struct ws_output *output, struct channel *channel, const struct iovec *pieces,
                   int count)
{
    bool waits = ws_output_waiting(output) > 0;

    for (int i = 0; i < count; i++) {
        struct iovec piece = pieces[i];

        waits = waits || !write_piece(channel, &piece);
        if (waits)
            keep(output, piece);
    }
    return !output->bytes.failed;
}

void ws_output_flush(struct ws_output *output, struct channel *channel)
{
    struct iovec waiting = { output->bytes.at + output->sent, ws_output_waiting(output) };
    bool         all;

    if (!waiting.iov_len)
        return;
    all          = write_piece(channel, &waiting);
    output->sent = output->bytes.len - waiting.iov_len;
    if (all)
        ws_output_fini(output);
}
