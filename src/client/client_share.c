#include "client/client_share.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "net/stream.h"

enum { READ_BYTES = 16 * 1024, OUT_BYTES = 32 * 1024 };

/* --- out ---------------------------------------------------------------------------------------------- */

/* False: it broke. */
static bool send_out(struct client_share *share)
{
    while (share->sent < share->out.len) {
        struct iovec piece = { share->out.at + share->sent, share->out.len - share->sent };
        ssize_t      n =
            share->stream->can_write ? stream_writev(share->stream, &piece, 1) : STREAM_WAIT;

        if (n < 0)
            return n == STREAM_WAIT;
        share->sent += (size_t)n;
    }
    buf_clear(&share->out);
    share->sent = 0;
    return true;
}

/* What the socket does not take now stays with the session, but for one piece. */
static bool flush(struct client_share *share)
{
    while (send_out(share)) {
        char *to = share->out.len ? NULL : buf_reserve(&share->out, OUT_BYTES);

        if (!to)
            return true;
        share->out.len = h2_client_produce(share->session, to, OUT_BYTES);
        if (!share->out.len) {
            buf_fini(&share->out); /* nothing waits: no memory for it */
            return true;
        }
    }
    return false;
}

/* --- in ----------------------------------------------------------------------------------------------- */

/* False: it is more than a server that means well has to say. */
static bool note_heard(struct client_share *share, size_t bytes)
{
    share->heard += bytes;
    share->unasked = share->users ? 0 : share->unasked + bytes;
    return share->unasked <= CLIENT_SHARE_UNASKED_MAX;
}

/* A turn's share of what has come; MUST: also if nothing is known of it. False: it has ended. */
static bool read_in(struct client_share *share, bool must)
{
    char bytes[READ_BYTES];

    for (int reads = 0; must || share->stream->can_read; reads++) {
        ssize_t n;

        if (reads == CLIENT_SHARE_READS_MAX) {
            client_share_touch(share);
            return true;
        }
        n    = stream_read(share->stream, bytes, sizeof(bytes));
        must = false;
        if (n == STREAM_WAIT)
            break;
        if (n <= 0 || !note_heard(share, (size_t)n) ||
            !h2_client_feed(share->session, bytes, (size_t)n))
            return false;
        stream_read_again(share->stream);
    }
    return true;
}

/* --- turns -------------------------------------------------------------------------------------------- */

/* The rest of a connection that is over is of no interest. */
static void go_on(struct client_share *share, bool must_read)
{
    bool is_well = read_in(share, must_read);

    is_well = flush(share) && is_well;
    if (is_well && !h2_client_is_over(share->session))
        return;
    share->is_lost = true;
    later_cancel(&share->turn);
    h2_client_lose(share->session);
}

static void on_turn(struct later *later)
{
    struct client_share *share = container_of(later, struct client_share, turn);

    client_share_on_event(share);
}

void client_share_on_event(struct client_share *share)
{
    if (share->is_lost)
        return;
    go_on(share, false);
    share->on_change(share);
}

void client_share_touch(struct client_share *share)
{
    if (!share->is_lost)
        loop_later(share->loop, &share->turn);
}

bool client_share_look(struct client_share *share)
{
    if (!share->is_lost)
        go_on(share, true);
    return !share->is_lost;
}

bool client_share_has_room(const struct client_share *share)
{
    return !share->is_lost && !share->is_left && h2_client_room(share->session) > 0;
}

bool client_share_is_new(const struct client_share *share)
{
    return !share->is_lost && !share->is_left && !h2_client_is_ready(share->session);
}

bool client_share_is_leaving(const struct client_share *share)
{
    return share->is_lost || share->is_left || h2_client_is_leaving(share->session);
}

/* --- life --------------------------------------------------------------------------------------------- */

int client_share_open(struct client_share **out, struct stream *stream, struct loop *loop,
                      const struct h2_client_events *events, struct err *err)
{
    struct h2_client_options options = { 0 };
    struct client_share     *share   = calloc(1, sizeof(*share));

    if (!share || h2_client_open(&share->session, &options, events, err) != 0) {
        free(share);
        return err_set(err, ERR_MEMORY, "no memory for a connection of HTTP/2");
    }
    share->stream = stream;
    share->loop   = loop;
    later_init(&share->turn, on_turn);
    buf_init(&share->out, OUT_BYTES);
    client_share_touch(share);
    *out = share;
    return 0;
}

void client_share_close(struct client_share *share)
{
    if (!share)
        return;
    later_cancel(&share->turn);
    h2_client_close(share->session);
    buf_fini(&share->out);
    free(share);
}
