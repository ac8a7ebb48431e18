/* A channel over one end of a socket pair; the test holds the other. */
#include "http/stream_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "ev/advance.h"
#include "http/channel.h"
#include "net/stream.h"
#include "support/check.h"

static struct loop   *loop;
static struct advance advance;

/* One end: its stream, the channel over it, and what its user saw. */
struct end {
    struct stream   stream;
    struct channel *channel; /* NULL: let go, or gone */
    struct buf      got;
    unsigned        ends, rooms, gones, releases;
    enum gone_why   why;
    bool            open;
    bool            holds_up; /* reads nothing */
};

static void on_bytes(struct channel *channel)
{
    struct end          *end = channel->arg;
    enum channel_reading reading;

    if (end->holds_up)
        return;
    do {
        buf_add_str(&end->got, channel_rest(channel));
        channel_consume(channel, channel_rest(channel).len);
        reading = channel_fill(channel);
    } while (reading == CHANNEL_BYTES);
    if (reading == CHANNEL_END) {
        end->ends++;
        end->channel = NULL;
        channel_end(channel);
    }
}

static void on_room(struct channel *channel)
{
    ((struct end *)channel->arg)->rooms++;
}

static void on_gone(struct channel *channel, enum gone_why why)
{
    struct end *end = channel->arg;

    end->gones++;
    end->why     = why;
    end->channel = NULL;
}

static const struct channel_user user = { on_bytes, on_room, on_gone };

static void on_released(struct stream *stream, void *arg)
{
    struct end *end = arg;

    end->releases++;
    end->open = false;
    stream_fini(stream);
}

static void on_stream(struct stream *stream, void *arg)
{
    abort(); /* its events are the channel's */
}

static void open_end(struct end *end, int fd, struct str early)
{
    *end = (struct end){ .open = true };
    buf_init(&end->got, SIZE_MAX);
    if (stream_init(&end->stream, loop, fd, on_stream, NULL) < 0)
        abort();
    end->channel = stream_channel_new(&end->stream, early, on_released, end);
}

static void close_end(struct end *end)
{
    if (end->open) {
        stream_channel_close(end->channel);
        stream_fini(&end->stream);
    }
    buf_fini(&end->got);
}

static void on_done(void *arg)
{
    loop_break(loop);
}

static void open_loop(int fds[2])
{
    if (loop_open(&loop, NULL) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    loop_hold_clock(loop);
    advance_init(&advance, loop, NULL, on_done, NULL);
}

static void pass_ms(uint64_t ms)
{
    advance_start(&advance, ms * NS_PER_MS);
    loop_run(loop);
}

static void settle(void)
{
    pass_ms(0);
}

/* --- one end ----------------------------------------------------------------------------------------- */

static struct end end;
static int        peer;

static void open_one(struct str early)
{
    int fds[2];

    open_loop(fds);
    open_end(&end, fds[0], early);
    peer = fds[1];
    channel_take(end.channel, &user, &end);
}

static void close_one(void)
{
    close_end(&end);
    if (peer >= 0)
        close(peer);
    loop_close(loop);
}

static void say(const char *text)
{
    CHECK(send(peer, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    settle();
}

static ssize_t write_text(const char *text, size_t len)
{
    struct iovec piece = { (void *)text, len };

    return channel_write(end.channel, &piece, 1);
}

/* How many bytes the peer finds; -1: the end. */
static ssize_t hear_some(void)
{
    static char bytes[256 * 1024];
    ssize_t     n = recv(peer, bytes, sizeof(bytes), 0);

    return n == 0 ? -1 : n < 0 ? 0 : n;
}

TEST(bytes_go_both_ways_early_ones_first)
{
    open_one(STR("early "));
    say("late");
    CHECK_MEM(end.got.at, end.got.len, "early late", 10);
    CHECK_INT(write_text("hi", 2), 2);
    CHECK_INT(channel_pending(end.channel), 2);
    settle();
    CHECK_INT(channel_pending(end.channel), 0);
    CHECK_INT(hear_some(), 2);
    close_one();
    CHECK_INT(end.gones, 1);
    CHECK_INT(end.why, GONE_SHUTDOWN);
}

TEST(who_reads_nothing_finds_it_when_he_asks)
{
    open_one(STR(""));
    end.holds_up = true;
    say("waits");
    CHECK_INT(end.got.len, 0);
    end.holds_up = false;
    channel_wake(end.channel);
    settle();
    CHECK_MEM(end.got.at, end.got.len, "waits", 5);
    close_one();
}

TEST(a_writer_waits_for_room_and_all_arrives)
{
    static char block[100 * 1000];
    size_t      written = 0, heard = 0;

    open_one(STR(""));
    for (;;) {
        ssize_t n = write_text(block, sizeof(block));

        if (n == CHANNEL_WAIT && channel_pending(end.channel) >= 64 * 1024)
            break;
        written += n > 0 ? (size_t)n : 0;
        settle();
    }
    CHECK_INT(end.rooms > 0, 0);
    for (unsigned turn = 0; turn < 1000 && heard < written; turn++) {
        ssize_t n = hear_some();

        CHECK(n >= 0);
        heard += (size_t)n;
        settle();
    }
    CHECK_INT(heard, written);
    CHECK_INT(end.rooms, 1);
    close_one();
}

TEST(what_was_written_goes_out_before_the_end_and_the_peer_has_a_second)
{
    open_one(STR(""));
    write_text("last", 4);
    channel_end(end.channel);
    settle();
    CHECK_INT(hear_some(), 4);
    CHECK_INT(hear_some(), -1);
    CHECK_INT(end.releases, 0);
    send(peer, "dropped", 7, MSG_NOSIGNAL);
    pass_ms(900);
    CHECK_INT(end.releases, 0);
    pass_ms(200);
    CHECK_INT(end.releases, 1);
    CHECK_INT(end.gones, 0);
    close_one();
}

TEST(a_peer_that_ends_too_is_not_waited_for)
{
    open_one(STR(""));
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(end.ends, 1);
    CHECK_INT(end.releases, 1);
    CHECK_INT(end.gones, 0);
    close_one();
}

TEST(a_peer_that_is_lost_is_told_once)
{
    open_one(STR(""));
    write_text("x", 1);
    settle();
    close(peer); /* with the byte unread: a reset */
    peer = -1;
    settle();
    CHECK_INT(end.gones + end.ends, 1);
    CHECK_INT(end.releases, 1);
    close_one();
}

TEST(a_peer_that_takes_nothing_is_given_up)
{
    static char block[64 * 1024];

    open_one(STR(""));
    while (channel_pending(end.channel) < sizeof(block)) {
        write_text(block, sizeof(block));
        settle();
    }
    pass_ms(STREAM_CHANNEL_WRITE_MS - 1000);
    CHECK_INT(end.gones, 0);
    pass_ms(2000);
    CHECK_INT(end.gones, 1);
    CHECK_INT(end.why, GONE_TIMEOUT);
    CHECK_INT(end.releases, 1);
    close_one();
}

TEST(an_abort_is_done_in_the_next_turn)
{
    open_one(STR(""));
    channel_abort(end.channel);
    CHECK_INT(end.releases, 0);
    settle();
    CHECK_INT(end.releases, 1);
    CHECK_INT(end.gones, 0);
    close_one();
}

TEST(who_has_let_go_may_still_be_closed_by_the_owner)
{
    open_one(STR(""));
    write_text("x", 1);
    channel_end(end.channel);
    close_one();
    CHECK_INT(end.gones, 0);
    CHECK_INT(end.releases, 0);
}

int main(void)
{
    return check_run();
}
