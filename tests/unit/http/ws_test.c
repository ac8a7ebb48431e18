/* Sockets of both sides, over channels in memory. */
#include "http/ws.h"

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

static void close_sides(void)
{
    side_close(&server);
    side_close(&client);
    world_close();
}

#define CHECK_LAST(side, text) CHECK_MEM((side).last.at, (side).last.len, text, strlen(text))

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

int main(void)
{
    return check_run();
}
