/* WebSocket between two channels whose streams have yet to shake hands. */
#include "ws/ws.h"

#include "http/channel.h"
#include "http/stream_channel.h"
#include "support/check.h"
#include "support/tls_pair.h"

static struct ws_shared *shared;
static struct ws        *server_ws, *client_ws;
static unsigned          messages, releases;
static size_t            last_len;
static unsigned          server_code, client_code;

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    if (ws == server_ws) {
        ws_send(ws, kind, data);
    } else {
        messages++;
        last_len = data.len;
    }
    ws_next(ws);
    loop_break(loop);
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    *(ws == server_ws ? &server_code : &client_code) = code;
    loop_break(loop);
}

static const struct ws_user talk = { .on_message = on_message, .on_closed = on_closed };

static void on_released(struct stream *stream, void *arg)
{
    releases++;
    end_close(arg);
    loop_break(loop);
}

static struct ws *open_ws(struct tls_end *end, bool client)
{
    struct ws_options options = { .client = client, .limit = 1 << 20, .buffer = 1 << 20 };
    struct channel   *channel = stream_channel_new(&end->stream, STR(""), on_released, end);
    struct ws        *ws      = NULL;

    CHECK(channel != NULL);
    CHECK_INT(ws_open(&ws, shared, channel, &options, &talk, NULL), 0);
    return ws;
}

static void open_talk(struct tls_server *server, struct tls_client *client, const char *name)
{
    messages = releases = server_code = client_code = 0;
    pair_open(0);
    CHECK_INT(ws_shared_open(&shared, loop, NULL), 0);
    begin(server, client, (struct tls_target){ .name = str_of(name) });
    server_ws = open_ws(&ours, false);
    client_ws = open_ws(&theirs, true);
}

static void close_talk(struct tls_server *server, struct tls_client *client)
{
    ws_shared_close(shared);
    pair_close();
    tls_server_close(server);
    tls_client_close(client);
}

TEST(messages_written_before_the_handshake_arrive_after_it)
{
    static char        big[1000 * 1000];
    struct tls_server *server;
    struct tls_client *client;

    pair_start();
    server = plain_server();
    client = plain_client();
    open_talk(server, client, "a.example");
    CHECK_INT(ws_send(client_ws, WS_TEXT, STR("early")), 0);
    RUN_UNTIL(messages == 1);
    CHECK_INT(last_len, 5);
    CHECK(tls_info(&ours.stream) != NULL);
    CHECK_INT(ws_send(client_ws, WS_BINARY, str_make(big, sizeof(big))), 0);
    RUN_UNTIL(messages == 2);
    CHECK_INT(last_len, sizeof(big));
    ws_close(client_ws, 1000, STR(""));
    RUN_UNTIL(releases == 2);
    CHECK_INT(server_code, 1000);
    CHECK_INT(client_code, 1000);
    close_talk(server, client);
}

TEST(a_handshake_that_fails_is_the_end_of_both)
{
    struct tls_server *server;
    struct tls_client *client;

    pair_start();
    server = plain_server();
    client = plain_client();
    open_talk(server, client, "other.example");
    RUN_UNTIL(releases == 2);
    CHECK_INT(server_code, 1006);
    CHECK_INT(client_code, 1006);
    close_talk(server, client);
}

int main(void)
{
    int rc = check_run();

    pair_end();
    forget_certs();
    return rc;
}
