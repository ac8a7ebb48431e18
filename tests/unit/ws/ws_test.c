/* Sockets of both sides, over channels in memory. What a single peer may say wrong is held with the
 * wire by tests/ws. */
#include "ws/ws.h"

#include <malloc.h>

#include "base/rand.h"
#include "ws/ws_deflate.h"
#include "ws/ws_encode.h"
#include "support/check.h"
#include "support/ws_sides.h"

static struct side server, client;

static void open_sides(const struct ws_options *for_server, const struct ws_options *for_client)
{
    struct ws_options options = *for_client;

    options.client = true;
    world_open();
    memset(&server, 0, sizeof(server));
    memset(&client, 0, sizeof(client));
    memory_channel_pair(loop, &server.channel, &client.channel);
    side_open(&server, for_server);
    side_open(&client, &options);
}

/* The client is the test, which says bytes. */
static void open_server(const struct ws_options *options)
{
    world_open();
    memset(&server, 0, sizeof(server));
    memset(&client, 0, sizeof(client));
    memory_channel_pair(loop, &server.channel, &client.channel);
    side_open(&server, options);
}

static void close_sides(void)
{
    side_close(&server);
    side_close(&client);
    world_close();
}

/* A client's frame whose mask is zeros. LENGTH may lie. */
static void add_frame(struct buf *to, unsigned first, uint64_t length, struct str payload)
{
    buf_add_byte(to, (char)first);
    if (length < 126) {
        buf_add_byte(to, (char)(0x80 | length));
    } else if (length < 65536) {
        buf_add_byte(to, (char)0xfe);
        for (int shift = 8; shift >= 0; shift -= 8)
            buf_add_byte(to, (char)(length >> shift));
    } else {
        buf_add_byte(to, (char)0xff);
        for (int shift = 56; shift >= 0; shift -= 8)
            buf_add_byte(to, (char)(length >> shift));
    }
    buf_add(to, "\0\0\0\0", 4);
    buf_add_str(to, payload);
}

static void say_frame(unsigned first, struct str payload)
{
    struct buf bytes;

    buf_init(&bytes, SIZE_MAX);
    add_frame(&bytes, first, payload.len, payload);
    memory_channel_feed(&server.channel, buf_str(&bytes));
    buf_fini(&bytes);
}

static void say_ping(void)
{
    say_frame(0x89, STR("p"));
}

/* What the server has said, and it is forgotten. */
static bool server_said(const char *bytes, size_t len)
{
    struct buf *heard = &client.channel.in;
    bool        is    = heard->len == len && memcmp(heard->at, bytes, len) == 0;

    if (!is)
        for (size_t i = 0; i < heard->len && i < 40; i++)
            fprintf(stderr, "%02x ", (unsigned char)heard->at[i]);
    buf_clear(heard);
    return is;
}

#define CHECK_SAID(bytes)      CHECK(server_said(bytes, sizeof(bytes) - 1))
#define CHECK_LAST(side, text) CHECK_MEM((side).last.at, (side).last.len, text, strlen(text))

static struct str letters(size_t len)
{
    static char text[1200 * 1024];

    memset(text, 'x', len);
    return str_make(text, len);
}

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

enum { MANY = 1000, IDLE_BYTES_MAX = 256 };

static struct side many[MANY];

static void open_many(const struct ws_options *options)
{
    world_open();
    memset(many, 0, sizeof(many));
    for (unsigned i = 0; i < MANY; i++) {
        memory_channel_init(&many[i].channel, loop, NULL);
        side_open(&many[i], options);
    }
}

static void close_many(void)
{
    for (unsigned i = 0; i < MANY; i++)
        side_close(&many[i]);
    world_close();
}

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

/* --- for many -------------------------------------------------------------------------------------------------- */

TEST(a_frame_for_a_thousand_is_encoded_once)
{
    struct ws_frame *frame;

    open_many(&ANYTHING);
    CHECK_INT(ws_frame_new(&frame, shared, WS_TEXT, STR("to all")), 0);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(ws_send_frame(many[i].ws, frame), 0);
    ws_frame_free(frame);
    CHECK_INT(ws_shared_counts(shared).encoded, 1);
    CHECK_INT(ws_shared_counts(shared).deflated, 0);
    CHECK_INT(ws_shared_counts(shared).messages_out, MANY);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(many[i].channel.written, 8);
    close_many();
}

TEST(it_is_deflated_once_for_all_who_want_it_so)
{
    struct ws_options options = ANYTHING;
    struct ws_frame  *frame;
    uint64_t          deflated, plain;

    options.deflate = true;
    open_many(&options);
    CHECK_INT(ws_frame_new(&frame, shared, WS_TEXT, letters(1000)), 0);
    CHECK_INT(ws_shared_counts(shared).deflated, 0);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_INT(ws_send_frame(many[i].ws, frame), 0);
    ws_frame_free(frame);
    CHECK_INT(ws_shared_counts(shared).encoded, 2); /* plain, and deflated */
    CHECK_INT(ws_shared_counts(shared).deflated, 1);
    deflated = many[0].channel.written;
    CHECK(deflated < 100);
    CHECK_INT(ws_frame_new(&frame, shared, WS_TEXT, STR("short")), 0);
    CHECK_INT(ws_send_frame(many[0].ws, frame), 0);
    ws_frame_free(frame);
    plain = many[0].channel.written - deflated;
    CHECK_INT(plain, 7); /* not worth it */
    close_many();
}

TEST(a_frame_reaches_clients_and_servers_alike)
{
    struct ws_options options = ANYTHING;
    struct ws_frame  *frame;

    options.deflate = true;
    open_sides(&options, &options);
    CHECK_INT(ws_frame_new(&frame, shared, WS_TEXT, STR("\xff")), WS_NOT_TEXT);
    CHECK_INT(ws_frame_new(&frame, shared, WS_TEXT, letters(70 * 1000)), 0);
    CHECK_INT(ws_send_frame(server.ws, frame), 0);
    CHECK_INT(ws_send_frame(client.ws, frame), 0);
    ws_frame_free(frame);
    settle();
    CHECK(str_is(buf_str(&client.last), letters(70 * 1000)));
    CHECK(str_is(buf_str(&server.last), letters(70 * 1000)));
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

/* --- closing -------------------------------------------------------------------------------------------------- */

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
