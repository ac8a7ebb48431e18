/* Two pairs of channels in memory, and the relay between them: the test holds the outer ends. */
#include "http/relay.h"

#include "base/err.h"
#include "ev/advance.h"
#include "support/check.h"
#include "support/memory_channel.h"

static struct loop          *loop;
static struct memory_channel client, one, other, server; /* client - one = other - server */
static unsigned              overs;
static struct advance        advance;

static void on_over(void *arg)
{
    overs++;
}

static void on_done(void *arg)
{
    loop_break(loop);
}

/* All that is due runs. */
static void turns(void)
{
    advance_start(&advance, 0);
    loop_run(loop);
}

static void open_both(void)
{
    struct err err;

    CHECK_INT(loop_open(&loop, &err), 0);
    loop_hold_clock(loop);
    advance_init(&advance, loop, NULL, on_done, NULL);
    memory_channel_pair(loop, &client, &one);
    memory_channel_pair(loop, &other, &server);
    overs = 0;
    CHECK(relay_start(&one.base, &other.base, on_over, NULL));
    turns();
}

static void close_both(void)
{
    memory_channel_fini(&client);
    memory_channel_fini(&one);
    memory_channel_fini(&other);
    memory_channel_fini(&server);
    loop_close(loop);
}

static ssize_t say(struct memory_channel *from, const char *text, size_t len)
{
    struct iovec piece = { (void *)text, len };

    return channel_write(&from->base, &piece, 1);
}

TEST(bytes_go_both_ways)
{
    open_both();
    say(&client, "hello", 5);
    say(&server, "welcome", 7);
    turns();
    CHECK_MEM(server.in.at, server.in.len, "hello", 5);
    CHECK_MEM(client.in.at, client.in.len, "welcome", 7);
    channel_abort(&client.base);
    turns();
    close_both();
}

TEST(a_side_that_takes_nothing_holds_the_other_up_and_loses_nothing)
{
    static char piece[1000];
    size_t      said = 0, got = 0;
    ssize_t     taken;

    open_both();
    for (unsigned idle = 0; idle < 4; idle++)
        while ((taken = say(&client, piece, sizeof(piece))) != CHANNEL_WAIT) {
            said += (size_t)taken;
            idle = 0;
            turns();
        }
    CHECK(said <= 3 * MEMORY_CHANNEL_ROOM);
    CHECK_INT(server.in.len, MEMORY_CHANNEL_ROOM);
    while (server.in.len) {
        got += server.in.len;
        server.visible = server.in.len;
        channel_consume(&server.base, server.in.len);
        turns();
    }
    CHECK_INT(got, said);
    channel_abort(&client.base);
    turns();
    close_both();
}

TEST(an_end_goes_on_behind_all_that_came_before_it)
{
    open_both();
    say(&client, "last words", 10);
    channel_end(&client.base);
    turns();
    CHECK_MEM(server.in.at, server.in.len, "last words", 10);
    CHECK(server.peer_ended && one.ended && other.ended);
    CHECK_INT(overs, 1);
    close_both();
}

TEST(a_cut_is_a_cut)
{
    open_both();
    channel_abort(&server.base);
    turns();
    CHECK(client.peer_gone && one.aborted);
    CHECK_INT(overs, 1);
    close_both();
}

int main(void)
{
    return check_run();
}
