/* Time limits of a socket: heartbeats, and messages that have begun. */
#include "ws/ws.h"

#include "support/ws_sides.h"

/* --- heartbeats ------------------------------------------------------------------------------------------------ */

static const struct ws_options BEATS = { .limit = 1000, .buffer = 1000, .heartbeat_ms = 10 * 1000 };

TEST(a_peer_that_answers_pings_stays)
{
    open_sides(&BEATS, &ANYTHING);
    pass_ms(100 * 1000);
    CHECK_INT(server.closes, 0);
    CHECK(server.channel.written >= 8 * 2); /* a ping in every ten seconds, and a bit */
    CHECK(server.channel.written <= 10 * 2);
    close_sides();
}

TEST(a_peer_that_is_silent_after_a_ping_is_cut)
{
    open_server(&BEATS);
    pass_ms(9 * 1000);
    say_frame(0x81, STR("alive"));
    pass_ms(9 * 1000);
    CHECK_INT(client.channel.in.len, 0);
    pass_ms(3 * 1000);
    CHECK_SAID("\x89\x00");
    CHECK_INT(server.closes, 0);
    pass_ms(12 * 1000);
    CHECK_INT(server.closes, 1);
    CHECK_INT(server.code, 1006);
    CHECK(server.channel.aborted);
    close_sides();
}

TEST(a_message_that_takes_its_time_is_no_silence_of_the_peer)
{
    open_sides(&BEATS, &ANYTHING);
    server.holds = true;
    ws_send(client.ws, WS_TEXT, STR("long work"));
    pass_ms(300 * 1000);
    CHECK_INT(server.closes, 0);
    ws_next(server.ws);
    pass_ms(300 * 1000);
    CHECK_INT(server.closes, 0);
    close_sides();
}

TEST(more_lengths_of_heartbeats_than_there_are_queues_share_them)
{
    open_many(&ANYTHING);
    for (unsigned i = 0; i < MANY; i++) {
        struct ws_options options = ANYTHING;

        side_close(&many[i]);
        memset(&many[i], 0, sizeof(many[i]));
        memory_channel_init(&many[i].channel, loop, NULL);
        options.heartbeat_ms = 1000 + i % 50 * 1000;
        side_open(&many[i], &options);
    }
    pass_ms(200 * 1000);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(many[i].code, 1006);
    for (unsigned i = 0; i < WS_BEATS_MAX; i++)
        CHECK_INT(shared->beats[i].sockets, 0);
    close_many();
}

/* --- slow messages ---------------------------------------------------------------------------------------------- */

static const struct ws_options PACED = { .limit = 10000, .buffer = 1000, .message_ms = 10 * 1000 };

TEST(a_message_that_stands_still_is_closed_with_1008_though_pings_are_answered)
{
    open_server(&PACED);
    say_frame(0x01, STR("begun"));
    for (unsigned i = 0; i < 3; i++) {
        pass_ms(3 * 1000);
        say_frame(0x8a, STR(""));
    }
    CHECK_INT(server.closes, 0);
    pass_ms(3 * 1000);
    CHECK_SAID("\x88\x1a\x03\xf0message comes too slowly");
    close_sides();
}

TEST(a_frame_that_comes_byte_by_byte_has_its_time_too)
{
    open_server(&PACED);
    memory_channel_feed(&server.channel, STR("\x82\xfe\x01\0\0\0\0\0"));
    for (unsigned i = 0; i < 9; i++) {
        memory_channel_feed(&server.channel, STR("x"));
        pass_ms(1000);
    }
    CHECK_INT(client.channel.in.len, 0);
    pass_ms(2 * 1000);
    CHECK_SAID("\x88\x1a\x03\xf0message comes too slowly");
    close_sides();
}

TEST(a_message_that_goes_on_may_take_long)
{
    char part[300] = "";

    open_server(&PACED);
    say_frame(0x02, STR(""));
    for (unsigned i = 0; i < 20; i++) {
        pass_ms(8 * 1000);
        say_frame(0x00, str_make(part, sizeof(part)));
    }
    say_frame(0x80, STR("."));
    settle();
    CHECK_INT(server.messages, 1);
    CHECK_INT(server.last.len, 20 * sizeof(part) + 1);
    pass_ms(100 * 1000); /* between messages nothing is due */
    CHECK_INT(server.closes, 0);
    close_sides();
}

TEST(what_waits_behind_a_message_that_is_handled_is_in_no_hurry)
{
    open_server(&PACED);
    server.holds = true;
    say_frame(0x81, STR("long work"));
    say_frame(0x01, STR("half"));
    pass_ms(100 * 1000);
    CHECK_INT(server.closes, 0);
    server.holds = false;
    ws_next(server.ws);
    settle();
    say_frame(0x80, STR("."));
    settle();
    CHECK_LAST(server, "half.");
    close_sides();
}

int main(void)
{
    return check_run();
}
