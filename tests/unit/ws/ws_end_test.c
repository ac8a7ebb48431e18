/* How a socket ends, whoever begins it. */
#include "ws/ws_end.h"

#include "ws/ws.h"
#include "support/ws_sides.h"

TEST(who_closes_is_told_his_own_code_and_the_peer_the_same)
{
    open_sides(&ANYTHING, &ANYTHING);
    ws_close(server.ws, 4321, STR("enough"));
    CHECK(!ws_is_open(server.ws));
    CHECK_INT(ws_send(server.ws, WS_TEXT, STR("x")), WS_GONE);
    CHECK_INT(server.closes, 0); /* not from inside a call */
    settle();
    CHECK_INT(server.closes, 1);
    CHECK_INT(server.code, 4321);
    CHECK_STR(server.reason, "enough");
    CHECK_INT(client.code, 4321);
    CHECK_STR(client.reason, "enough");
    CHECK(server.channel.ended && client.channel.ended);
    CHECK_INT(ws_shared_counts(shared).sockets, 0);
    close_sides();
}

TEST(a_client_lets_the_server_end_first)
{
    open_sides(&ANYTHING, &ANYTHING);
    ws_close(client.ws, 1000, STR(""));
    server.channel.base.user = NULL; /* slow */
    settle();
    CHECK_INT(client.closes, 0);
    memory_channel_feed(&client.channel, STR("\x88\x02\x03\xe8"));
    settle();
    CHECK_INT(client.closes, 0);
    memory_channel_feed(&client.channel, STR("junk"));
    client.channel.peer_ended = true;
    settle();
    CHECK_INT(client.closes, 1);
    CHECK_INT(client.code, 1000);
    close_sides();
}

TEST(a_close_frame_without_a_code_is_1005)
{
    open_sides(&ANYTHING, &ANYTHING);
    ws_close(client.ws, 0, STR("no room for it"));
    settle();
    CHECK_INT(server.code, 1005);
    CHECK_INT(client.code, 1005);
    CHECK_STR(server.reason, "");
    close_sides();
}

TEST(a_long_reason_is_cut_at_a_character)
{
    char reason[200];

    memset(reason, 'r', sizeof(reason));
    memcpy(reason + 122, "\xc3\xbc", 2);
    open_sides(&ANYTHING, &ANYTHING);
    ws_close(client.ws, 1000, str_make(reason, sizeof(reason)));
    settle();
    CHECK_INT(server.code, 1000);
    CHECK_INT(strlen(server.reason), 122);
    close_sides();
}

TEST(what_was_sent_before_the_close_comes_before_it)
{
    open_sides(&ANYTHING, &ANYTHING);
    CHECK_INT(ws_send(server.ws, WS_BINARY, letters(900 * 1000)), 0);
    ws_close(server.ws, 1000, STR(""));
    settle();
    CHECK_INT(client.last.len, 900 * 1000);
    CHECK_INT(client.code, 1000);
    CHECK_INT(server.code, 1000);
    close_sides();
}

TEST(who_does_not_answer_a_close_is_cut_after_five_seconds)
{
    open_server(&ANYTHING);
    ws_close(server.ws, 1001, STR(""));
    pass_ms(4900);
    say_frame(0x81, STR("passed over"));
    settle();
    CHECK_INT(server.closes, 0);
    pass_ms(700);
    CHECK_INT(server.closes, 1);
    CHECK_INT(server.code, 1006);
    CHECK_INT(server.messages, 0);
    CHECK(server.channel.aborted);
    close_sides();
}

TEST(a_close_is_answered_while_a_message_is_handled)
{
    open_sides(&ANYTHING, &ANYTHING);
    server.holds = true;
    ws_send(client.ws, WS_TEXT, STR("one"));
    ws_send(client.ws, WS_TEXT, STR("two"));
    settle();
    ws_close(server.ws, 1000, STR(""));
    settle();
    CHECK_INT(server.closes, 1);
    CHECK_INT(server.messages, 1);
    close_sides();
}

static void close_it(struct side *side, struct str data)
{
    ws_close(side->ws, 1008, STR("no"));
}

static void abort_it(struct side *side, struct str data)
{
    struct ws *ws = side->ws;

    side->ws = NULL;
    ws_abort(ws);
    if (data.len != 3 || memcmp(data.at, "one", 3) != 0)
        abort(); /* it lives until the event returns */
}

TEST(a_socket_may_be_closed_from_its_message)
{
    open_sides(&ANYTHING, &ANYTHING);
    server.then = close_it;
    ws_send(client.ws, WS_TEXT, STR("one"));
    ws_send(client.ws, WS_TEXT, STR("two"));
    settle();
    CHECK_INT(server.messages, 1);
    CHECK_INT(server.code, 1008);
    CHECK_INT(client.code, 1008);
    close_sides();
}

TEST(a_socket_may_be_cut_from_its_message)
{
    open_sides(&ANYTHING, &ANYTHING);
    server.then = abort_it;
    ws_send(client.ws, WS_TEXT, STR("one"));
    ws_send(client.ws, WS_TEXT, STR("two"));
    settle();
    CHECK_INT(server.messages, 1);
    CHECK_INT(server.closes, 0);
    CHECK(server.channel.aborted);
    CHECK_INT(client.code, 1006);
    close_sides();
}

TEST(an_end_without_a_close_frame_is_1006)
{
    open_server(&ANYTHING);
    memory_channel_feed(&server.channel, STR("\x81\x85\0\0\0\0ab"));
    server.channel.peer_ended = true;
    settle();
    CHECK_INT(server.closes, 1);
    CHECK_INT(server.code, 1006);
    CHECK(server.channel.ended);
    close_sides();
}

TEST(a_wire_that_goes_is_1006)
{
    open_server(&ANYTHING);
    server.channel.peer_gone = true;
    memory_channel_tell(&server.channel);
    settle();
    CHECK_INT(server.code, 1006);
    close_sides();
}

int main(void)
{
    return check_run();
}
