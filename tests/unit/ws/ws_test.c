/* Sockets of both sides, over channels in memory. What a single peer may say wrong is held with the
 * wire by tests/ws. */
#include "ws/ws.h"

#include <malloc.h>

#include "base/rand.h"
#include "ws/ws_deflate.h"
#include "ws/ws_encode.h"
#include "support/check.h"
#include "support/ws_sides.h"

/* --- messages ---------------------------------------------------------------------------------------- */

TEST(a_message_goes_there_and_back)
{
    open_sides(&ANYTHING, &ANYTHING);
    server.echoes = true;
    CHECK_INT(ws_send(client.ws, WS_TEXT, STR("gr\xc3\xbc\xc3\x9f dich")), 0);
    settle();
    CHECK_INT(client.messages, 1);
    CHECK_INT(client.kind, WS_TEXT);
    CHECK_LAST(client, "gr\xc3\xbc\xc3\x9f dich");
    CHECK_INT(ws_send(client.ws, WS_BINARY, STR("\xff")), 0);
    settle();
    CHECK_INT(client.kind, WS_BINARY);
    CHECK_LAST(client, "\xff");
    close_sides();
}

TEST(messages_of_all_forms_of_length_come_whole)
{
    static const size_t LENGTHS[] = { 0, 1, 125, 126, 4095, 4096, 65535, 65536, 1024 * 1024 };

    open_sides(&ANYTHING, &ANYTHING);
    server.echoes = true;
    for (unsigned i = 0; i < ARRAY_LEN(LENGTHS); i++) {
        CHECK_INT(ws_send(client.ws, WS_BINARY, letters(LENGTHS[i])), 0);
        settle();
        CHECK_INT(client.messages, i + 1);
        CHECK_INT(client.last.len, LENGTHS[i]);
        CHECK(str_is(buf_str(&client.last), letters(LENGTHS[i])));
    }
    close_sides();
}

TEST(a_client_masks_and_a_server_does_not)
{
    open_sides(&ANYTHING, &ANYTHING);
    client.channel.base.user = NULL; /* it hears nothing */
    CHECK_INT(ws_send(server.ws, WS_TEXT, STR("hi")), 0);
    CHECK_SAID("\x81\x02hi");
    CHECK_INT(ws_send(client.ws, WS_TEXT, STR("hi")), 0);
    CHECK_INT(server.channel.in.len, 8);
    CHECK_MEM(server.channel.in.at, 2, "\x81\x82", 2);
    settle();
    CHECK_LAST(server, "hi");
    CHECK_INT(ws_send(server.ws, WS_TEXT, STR("hi")), 0); /* nor after a client's frame */
    CHECK_SAID("\x81\x02hi");
    close_sides();
}

TEST(a_text_that_is_no_utf8_is_not_sent)
{
    open_sides(&ANYTHING, &ANYTHING);
    CHECK_INT(ws_send(server.ws, WS_TEXT, STR("\xc3\x28")), WS_NOT_TEXT);
    CHECK_INT(ws_send(server.ws, WS_BINARY, STR("\xc3\x28")), 0);
    close_sides();
}

TEST(a_ping_inside_a_message_is_answered_before_its_end)
{
    open_server(&ANYTHING);
    say_frame(0x01, STR("ab"));
    say_frame(0x89, STR("now"));
    settle();
    CHECK_SAID("\x8a\x03now");
    CHECK_INT(server.messages, 0);
    say_frame(0x80, STR("cd"));
    settle();
    CHECK_LAST(server, "abcd");
    close_sides();
}

TEST(an_unasked_pong_is_passed_over)
{
    open_server(&ANYTHING);
    say_frame(0x8a, STR("x"));
    say_frame(0x81, STR("t"));
    settle();
    CHECK_LAST(server, "t");
    CHECK_INT(client.channel.in.len, 0);
    close_sides();
}

/* --- any fragmentation ------------------------------------------------------------------------------- */

enum { ECHOES = 100 * 1000, ECHOES_AT_ONCE = 64 };

static size_t any_piece(void)
{
    return rand_below(8) ? 1 + rand_below(40) : 1 + rand_below(8000);
}

static unsigned next_sent, next_heard, wrong;

static size_t put_number(char text[64], unsigned number)
{
    return (size_t)snprintf(text, 64, "%u %.*s", number, (int)(number % 50),
                            "..................................................");
}

static void send_some(void)
{
    char text[64];

    for (; next_sent < ECHOES && next_sent < next_heard + ECHOES_AT_ONCE; next_sent++)
        if (ws_send(client.ws, next_sent % 2 ? WS_TEXT : WS_BINARY,
                    str_make(text, put_number(text, next_sent))) != 0)
            return;
}

static void on_echo(struct side *side, struct str data)
{
    char text[64];

    if (!str_is(data, str_make(text, put_number(text, next_heard))) ||
        (side->kind == WS_TEXT) != (next_heard % 2 == 1))
        wrong++;
    next_heard++;
    send_some();
}

static void echo_all(const struct ws_options *for_server, const struct ws_options *for_client)
{
    next_sent = next_heard = wrong = 0;
    open_sides(for_server, for_client);
    server.echoes             = true;
    server.channel.next_piece = client.channel.next_piece = any_piece;
    client.then                                           = on_echo;
    send_some();
    settle();
    CHECK_INT(next_heard, ECHOES);
    CHECK_INT(wrong, 0);
    CHECK_INT(server.messages, ECHOES);
    close_sides();
}

TEST(a_hundred_thousand_messages_come_back_in_order_in_pieces_of_any_size)
{
    echo_all(&ANYTHING, &ANYTHING);
}

TEST(a_hundred_thousand_messages_come_back_in_order_in_fragments)
{
    struct ws_options server_cuts = ANYTHING, client_cuts = ANYTHING;

    server_cuts.fragment = 7;
    client_cuts.fragment = 3;
    echo_all(&server_cuts, &client_cuts);
}

/* --- one at a time --------------------------------------------------------------------------------------- */

TEST(the_next_message_waits_until_the_first_was_handled)
{
    open_sides(&ANYTHING, &ANYTHING);
    server.holds = true;
    ws_send(client.ws, WS_TEXT, STR("one"));
    ws_send(client.ws, WS_TEXT, STR("two"));
    settle();
    CHECK_INT(server.messages, 1);
    settle();
    CHECK_INT(server.messages, 1);
    ws_next(server.ws); /* what stands in the reader comes though the channel has nothing new */
    settle();
    CHECK_INT(server.messages, 2);
    CHECK_LAST(server, "two");
    close_sides();
}

TEST(while_a_message_is_handled_nothing_is_read)
{
    unsigned fills;

    open_sides(&ANYTHING, &ANYTHING);
    server.holds = true;
    ws_send(client.ws, WS_TEXT, STR("one"));
    settle();
    fills = server.channel.fills;
    for (unsigned i = 0; i < 100; i++)
        ws_send(client.ws, WS_BINARY, letters(5000));
    settle();
    CHECK_INT(server.channel.fills, fills);
    CHECK(server.channel.in.len <= MEMORY_CHANNEL_ROOM);
    CHECK(ws_pending(client.ws) > 400 * 1000);
    close_sides();
}

/* --- bounds ---------------------------------------------------------------------------------------------- */

TEST(a_message_over_the_limit_is_refused_before_it_comes)
{
    struct ws_options options = ANYTHING;
    struct buf        bytes;

    options.limit = 1000;
    open_server(&options);
    buf_init(&bytes, SIZE_MAX);
    add_frame(&bytes, 0x02, 600, letters(600));
    add_frame(&bytes, 0x80, 401, STR("x")); /* the rest of it does not come */
    memory_channel_feed(&server.channel, buf_str(&bytes));
    settle();
    CHECK_SAID("\x88\x13\x03\xf1message too large");
    CHECK_INT(server.code, 1009);
    CHECK_STR(server.reason, "message too large");
    CHECK_INT(server.messages, 0);
    buf_fini(&bytes);
    close_sides();
}

TEST(a_message_of_just_the_limit_is_taken)
{
    struct ws_options options = ANYTHING;

    options.limit   = 1000;
    options.deflate = true;
    open_sides(&options, &options);
    ws_send(client.ws, WS_TEXT, letters(1000));
    settle();
    CHECK_INT(server.last.len, 1000);
    ws_send(client.ws, WS_TEXT, letters(1001));
    settle();
    CHECK_INT(server.code, 1009);
    CHECK_INT(client.code, 1009);
    close_sides();
}

TEST(a_bomb_is_measured_when_inflated)
{
    struct ws_options options = ANYTHING;

    options.limit   = 64 * 1024;
    options.deflate = true;
    open_sides(&options, &options);
    ws_send(client.ws, WS_TEXT, letters(1000 * 1000));
    CHECK(server.channel.in.len < 4000);
    settle();
    CHECK_INT(server.code, 1009);
    CHECK_INT(server.messages, 0);
    CHECK(shared->deflater.plain.room <= WS_DEFLATE_KEPT);
    close_sides();
}

TEST(sending_waits_when_the_buffer_is_full_and_goes_on_when_half_of_it_is_free)
{
    struct ws_options options = ANYTHING;
    unsigned          sent    = 0;

    options.buffer = 100 * 1000;
    open_sides(&options, &ANYTHING);
    client.holds = true;
    while (ws_send(server.ws, WS_BINARY, letters(10 * 1000)) == 0)
        sent++;
    CHECK_INT(ws_send(server.ws, WS_BINARY, letters(10 * 1000)), WS_WAIT);
    CHECK(sent * 10 * 1000 <= options.buffer + MEMORY_CHANNEL_ROOM);
    CHECK(ws_pending(server.ws) <= options.buffer);
    settle();
    CHECK_INT(server.rooms, 0);
    client.holds = false;
    ws_next(client.ws);
    settle();
    CHECK_INT(server.rooms, 1);
    CHECK_INT(client.messages, sent);
    CHECK_INT(ws_pending(server.ws), 0);
    CHECK_INT(ws_send(server.ws, WS_BINARY, STR("x")), 0);
    close_sides();
}

TEST(a_message_larger_than_the_buffer_goes_alone)
{
    struct ws_options options = ANYTHING;

    options.buffer = 1000;
    open_sides(&options, &ANYTHING);
    CHECK_INT(ws_send(server.ws, WS_BINARY, letters(500 * 1000)), 0);
    CHECK_INT(ws_send(server.ws, WS_BINARY, STR("x")), WS_WAIT);
    settle();
    CHECK_INT(client.last.len, 500 * 1000);
    CHECK_INT(server.rooms, 1);
    close_sides();
}

TEST(who_pings_and_takes_no_pong_is_not_read_on)
{
    open_server(&ANYTHING);
    for (unsigned i = 0; i < 200 * 1000; i++)
        say_ping();
    settle();
    CHECK(ws_pending(server.ws) <= 32 * 1024);
    CHECK(server.channel.in.len > 0);
    for (unsigned turn = 0; turn < 1000 && server.channel.in.len; turn++) {
        server.channel.has_room = client.channel.in.len > 0; /* the peer reads */
        buf_clear(&client.channel.in);
        memory_channel_tell(&server.channel);
        settle();
    }
    CHECK_INT(server.channel.in.len, 0);
    CHECK_INT(server.channel.written + ws_pending(server.ws), 200 * 1000 * 3);
    close_sides();
}

TEST(a_flood_of_empty_fragments_leaves_the_loop_to_others)
{
    unsigned turns = 0;
    size_t   left;

    open_server(&ANYTHING);
    say_frame(0x01, STR(""));
    for (unsigned i = 0; i < 50 * 1000; i++)
        say_frame(0x00, STR(""));
    left = server.channel.in.len;
    for (; server.channel.in.len && turns < 10000; turns++) {
        memory_channel_turn(&server.channel.turn);
        CHECK(left - server.channel.in.len <= 8 * 1024);
        left = server.channel.in.len;
    }
    CHECK(turns > 50);
    say_frame(0x80, STR("end"));
    settle();
    CHECK_LAST(server, "end");
    close_sides();
}

/* --- memory at rest ------------------------------------------------------------------------------------------ */

enum { IDLE_BYTES_MAX = 256 };

TEST(a_socket_at_rest_is_one_small_cell)
{
    struct ws_options options = ANYTHING;

    options.heartbeat_ms = 30 * 1000;
    options.deflate      = true;
    open_many(&options);
    for (unsigned i = 0; i < MANY; i++) {
        many[i].echoes = true;
        memory_channel_feed(&many[i].channel, STR("\x81\x82\0\0\0\0hi\x01\x82\0\0\0\0ab"
                                                  "\x80\x82\0\0\0\0cd"));
    }
    settle();
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_INT(many[i].messages, 2);
        CHECK(malloc_usable_size(many[i].ws) <= IDLE_BYTES_MAX);
    }
    CHECK_INT(ws_shared_counts(shared).sockets, MANY);
    CHECK_INT(ws_shared_counts(shared).lent, 0);
    CHECK(shared->reader_count <= WS_READERS_AT_REST);
    close_many();
}

TEST(a_socket_inside_of_a_frame_keeps_its_reader)
{
    open_server(&ANYTHING);
    memory_channel_feed(&server.channel, STR("\x81"));
    settle();
    CHECK_INT(ws_shared_counts(shared).lent, 1);
    memory_channel_feed(&server.channel, STR("\x82\0\0\0\0hi"));
    settle();
    CHECK_INT(ws_shared_counts(shared).lent, 0);
    CHECK_LAST(server, "hi");
    close_sides();
}

/* --- deflate ---------------------------------------------------------------------------------------------------- */

TEST(deflated_messages_come_back_whole_in_pieces_too)
{
    struct ws_options options = ANYTHING;

    options.deflate  = true;
    options.fragment = 100;
    open_sides(&options, &options);
    server.echoes             = true;
    server.channel.next_piece = client.channel.next_piece = any_piece;
    for (unsigned i = 0; i < 50; i++) {
        char   noise[3000];
        size_t len = rand_below(sizeof(noise));

        rand_bytes(noise, len / 2);
        memset(noise + len / 2, 'n', len - len / 2);
        CHECK_INT(ws_send(client.ws, WS_BINARY, str_make(noise, len)), 0);
        settle();
        CHECK_MEM(client.last.at, client.last.len, noise, len);
    }
    CHECK(ws_shared_counts(shared).deflated > 40);
    close_sides();
}

/* What is no longer than the window holds nothing that points beyond it. */
TEST(a_peer_with_a_small_window_gets_long_messages_plain)
{
    struct ws_options options = ANYTHING;

    options.deflate      = true;
    options.deflate_bits = 10;
    open_server(&options);
    CHECK_INT(ws_send(server.ws, WS_TEXT, letters(1024)), 0);
    CHECK(client.channel.in.len < 100);
    buf_clear(&client.channel.in);
    CHECK_INT(ws_send(server.ws, WS_TEXT, letters(1025)), 0);
    CHECK_INT(client.channel.in.len, 4 + 1025);
    close_sides();
}

TEST(what_is_no_deflate_is_refused)
{
    struct ws_options options = ANYTHING;

    options.deflate = true;
    open_server(&options);
    say_frame(0xc1, STR("\xff\xff\xff\xff"));
    settle();
    CHECK_INT(server.code, 1007);
    close_sides();
}

TEST(what_is_no_text_when_inflated_is_refused)
{
    struct ws_options options = ANYTHING;
    char              bytes[200];

    memset(bytes, '\xc3', sizeof(bytes));
    options.deflate = true;
    open_sides(&options, &options);
    CHECK_INT(ws_send(client.ws, WS_BINARY, str_make(bytes, sizeof(bytes))), 0);
    CHECK_MEM(server.channel.in.at, 1, "\xc2", 1);
    server.channel.in.at[0] = '\xc1'; /* it says that it is text */
    settle();
    CHECK_INT(server.code, 1007);
    CHECK_STR(server.reason, "text is not UTF-8");
    close_sides();
}

/* RFC 7692, 7.2.3.4 and 7.2.3.6: "Hello" in a final block, and nothing at all. */
TEST(final_blocks_and_empty_messages_inflate)
{
    struct ws_options options = ANYTHING;

    options.deflate = true;
    open_server(&options);
    say_frame(0xc1, STR("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"));
    settle();
    CHECK_LAST(server, "Hello");
    say_frame(0xc1, STR("\x00"));
    settle();
    CHECK_INT(server.messages, 2);
    CHECK_LAST(server, "");
    close_sides();
}

int main(void)
{
    return check_run();
}
