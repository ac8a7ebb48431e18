/* A message for many sockets. */
#include "ws/ws_frame.h"

#include "ws/ws.h"
#include "support/ws_sides.h"

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

int main(void)
{
    return check_run();
}
