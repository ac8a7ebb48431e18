/* WebSocket between two channels over a socket pair. */
#include "ws/ws.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ev/advance.h"
#include "http/channel.h"
#include "http/stream_channel.h"
#include "net/stream.h"
#include "support/check.h"

struct talker {
    struct stream stream;
    struct ws    *ws;
    unsigned      messages;
    unsigned      code;
    unsigned      releases;
    size_t        last_len;
};

static struct loop      *loop;
static struct advance    advance;
static struct ws_shared *shared;
static struct talker     talkers[2]; /* the server and the client */

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct talker *talker = ws_arg(ws);

    talker->messages++;
    talker->last_len = data.len;
    if (talker == &talkers[0])
        ws_send(ws, kind, data);
    ws_next(ws);
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    ((struct talker *)ws_arg(ws))->code = code;
}

static const struct ws_user talk = { .on_message = on_message, .on_closed = on_closed };

static void on_released(struct stream *stream, void *arg)
{
    ((struct talker *)arg)->releases++;
    stream_fini(stream);
}

static void on_stream(struct stream *stream, void *arg)
{
    abort(); /* its events are the channel's */
}

static void open_talker(struct talker *talker, int fd, bool client)
{
    struct ws_options options = { .client = client, .limit = 1 << 20, .buffer = 1 << 20 };
    struct channel   *channel;

    *talker = (struct talker){ 0 };
    if (stream_init(&talker->stream, loop, fd, on_stream, NULL) < 0)
        abort();
    channel = stream_channel_new(&talker->stream, STR(""), on_released, talker);
    CHECK_INT(ws_open(&talker->ws, shared, channel, &options, &talk, talker), 0);
}

static void on_done(void *arg)
{
    loop_break(loop);
}

static void settle(void)
{
    advance_start(&advance, 0);
    loop_run(loop);
}

static void open_talk(void)
{
    int fds[2];

    if (loop_open(&loop, NULL) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    loop_hold_clock(loop);
    advance_init(&advance, loop, NULL, on_done, NULL);
    CHECK_INT(ws_shared_open(&shared, loop, NULL), 0);
    open_talker(&talkers[0], fds[0], false);
    open_talker(&talkers[1], fds[1], true);
}

TEST(messages_come_in_order_and_both_sides_close)
{
    static char big[1000 * 1000];

    open_talk();
    for (unsigned i = 0; i < 100; i++)
        CHECK_INT(ws_send(talkers[1].ws, WS_TEXT, STR("hello")), 0);
    CHECK_INT(ws_send(talkers[1].ws, WS_BINARY, str_make(big, sizeof(big))), 0);
    settle();
    CHECK_INT(talkers[1].messages, 101);
    CHECK_INT(talkers[1].last_len, sizeof(big));
    CHECK_INT(ws_shared_counts(shared).lent, 0);
    ws_close(talkers[1].ws, 1000, STR(""));
    settle();
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(talkers[i].code, 1000);
        CHECK_INT(talkers[i].releases, 1);
    }
    ws_shared_close(shared);
    loop_close(loop);
}

int main(void)
{
    return check_run();
}
