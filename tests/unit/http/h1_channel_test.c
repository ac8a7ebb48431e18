/* An upgraded connection of HTTP/1.1: its user echoes what comes, or does what the path says. */
#include "http/channel.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/message.h"
#include "http/serve.h"
#include "net/addr.h"
#include "support/check.h"
#include "support/settle.h"

#define UPGRADE(path)                                                                              \
    "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n"

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static int                 client;
static char                received[512 * 1024];
static size_t              received_len;

static struct channel *channel; /* open, ours */
static unsigned        gone_count, room_count, end_count, sent_count;
static bool            holds_up; /* the user reads nothing */
static unsigned        wakes;    /* that the user asks for from its own event */
static unsigned        bytes_count;
static unsigned        status;

/* --- the user ------------------------------------------------------------------------------------ */

static bool echo(struct channel *ch)
{
    struct str   rest  = channel_rest(ch);
    struct iovec piece = { (void *)rest.at, rest.len };
    ssize_t      n     = rest.len ? channel_write(ch, &piece, 1) : 0;

    if (n > 0)
        channel_consume(ch, (size_t)n);
    return n >= 0;
}

static void on_bytes(struct channel *ch)
{
    bytes_count++;
    if (wakes > 0) {
        wakes--;
        channel_wake(ch);
    }
    while (!holds_up && echo(ch)) {
        enum channel_reading reading = channel_fill(ch);

        if (reading == CHANNEL_NOTHING)
            return;
        if (reading == CHANNEL_END) {
            end_count++;
            channel = NULL;
            channel_end(ch);
            return;
        }
    }
}

static void on_room(struct channel *ch)
{
    room_count++;
    channel_wake(ch);
}

static void on_gone(struct channel *ch, enum gone_why why)
{
    gone_count++;
    channel = NULL;
}

static const struct channel_user echo_user = { on_bytes, on_room, on_gone };

/* --- the app -------------------------------------------------------------------------------------- */

static void on_sent(struct exchange *ex)
{
    sent_count++;
}

static void on_exchange_gone(struct exchange *ex, enum gone_why why)
{
    exchange_work_let_go(ex);
}

static const struct exchange_work work = { .on_sent = on_sent, .on_gone = on_exchange_gone };

static const struct answer PLAIN = { .status = 200 };

static void on_request(struct exchange *ex, void *arg)
{
    struct field  field  = { STR("X-A"), STR("b"), FIELD_OTHER };
    struct answer answer = { .fields = &field, .field_count = 1 };

    ex->work = &work;
    channel  = exchange_upgrade(ex, STR("echo"), &answer);
    status   = ex->answer_status;
    if (!channel)
        exchange_answer(ex, &PLAIN, STR("plain"));
    else if (str_is(ex->request.path, STR("/cut")))
        channel_abort(channel);
    else
        channel_take(channel, &echo_user, NULL);
    exchange_work_let_go(ex);
}

/* --- the world ------------------------------------------------------------------------------------ */

static void open_server(void)
{
    struct http_limits         limits;
    struct http_server_options options;
    struct addr                peer = { .family = AF_UNIX };
    int                        ends[2];

    channel      = NULL;
    received_len = gone_count = room_count = end_count = sent_count = 0;
    holds_up                                                        = false;
    wakes = bytes_count = 0;
    http_limits_init(&limits);
    arena_pool_init(&arenas, 64);
    if (loop_open(&loop, NULL) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        abort();
    options = (struct http_server_options){
        .loop = loop, .arenas = &arenas, .limits = &limits, .dispatch = on_request
    };
    server = http_server_open(&options);
    http_server_accept(server, ends[1], &peer);
    client = ends[0];
}

static void close_server(void)
{
    http_server_close(server);
    close(client);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

static void say(const char *text)
{
    CHECK(send(client, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    settle(loop);
}

/* All that is there; false once the server has ended its direction. */
static bool hear(void)
{
    ssize_t n = 1;

    while (n > 0 && received_len < sizeof(received) - 1) {
        n = recv(client, received + received_len, sizeof(received) - 1 - received_len, 0);
        received_len += n > 0 ? (size_t)n : 0;
    }
    received[received_len] = '\0';
    return n != 0;
}

static bool heard(const char *text)
{
    return strstr(received, text) != NULL;
}

/* --- tests ---------------------------------------------------------------------------------------- */

TEST(an_upgrade_is_answered_with_101_and_its_bytes_are_the_channels)
{
    open_server();
    say(UPGRADE("/"));
    CHECK(hear());
    CHECK(heard("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n"));
    CHECK(heard("X-A: b\r\n\r\n"));
    CHECK_INT(status, 101);
    CHECK_INT(sent_count, 0); /* its work had let go before */
    say("GET / HTTP/1.1\r\n\r\n");
    CHECK(hear());
    CHECK(heard("\r\n\r\nGET / HTTP/1.1\r\n\r\n"));
    close_server();
    CHECK_INT(gone_count, 1);
}

TEST(what_stands_behind_the_request_is_the_channels)
{
    open_server();
    say(UPGRADE("/") "early");
    CHECK(hear());
    CHECK(heard("\r\n\r\nearly"));
    close_server();
}

TEST(answers_before_it_keep_their_place)
{
    open_server();
    say("GET /a HTTP/1.1\r\nHost: a\r\n\r\n" UPGRADE("/") "x");
    CHECK(hear());
    CHECK(heard("plainHTTP/1.1 101 "));
    close_server();
}

TEST(who_does_not_ask_is_not_upgraded)
{
    open_server();
    say("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n");
    say("GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    hear();
    CHECK(!heard(" 101 ") && heard("plain"));
    close_server();
}

TEST(an_end_of_the_peer_is_read_and_ours_follows)
{
    open_server();
    say(UPGRADE("/") "last");
    shutdown(client, SHUT_WR);
    settle(loop);
    CHECK(!hear());
    CHECK(heard("last"));
    CHECK_INT(end_count, 1);
    CHECK_INT(gone_count, 0);
    CHECK_INT(http_server_connections(server), 0);
    close_server();
}

TEST(a_channel_may_be_cut_before_its_exchange_has_ended)
{
    open_server();
    say(UPGRADE("/cut"));
    CHECK_INT(http_server_connections(server), 0);
    close_server();
    CHECK_INT(gone_count, 0);
}

TEST(a_peer_that_goes_is_told_once)
{
    open_server();
    say(UPGRADE("/"));
    close(client); /* with an unread answer: a reset */
    settle(loop);
    CHECK_INT(gone_count + end_count, 1);
    CHECK_INT(http_server_connections(server), 0);
    close_server();
}

/* 64 KiB and the socket's own share; who reads on gets all of it. */
TEST(a_writer_waits_for_its_reader)
{
    char   block[64 * 1024] = { 0 };
    size_t sent             = 0, head;

    open_server();
    say(UPGRADE("/"));
    hear();
    head = received_len;
    for (unsigned i = 0; i < 64; i++) {
        ssize_t n = send(client, block, sizeof(block), MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        settle(loop);
    }
    CHECK(sent < 64 * sizeof(block));
    for (unsigned i = 0; i < 64 && received_len < head + sent; i++) {
        hear();
        if (received_len > sizeof(received) / 2) {
            sent -= received_len - head;
            received_len = head;
        }
        settle(loop);
    }
    CHECK_INT(received_len - head, sent);
    CHECK(room_count > 0);
    close_server();
}

TEST(who_reads_nothing_holds_his_peer_up_and_may_go_on)
{
    open_server();
    say(UPGRADE("/"));
    holds_up = true;
    say("waits");
    hear();
    CHECK(!heard("waits"));
    holds_up = false;
    channel_wake(channel);
    settle(loop);
    hear();
    CHECK(heard("waits"));
    close_server();
}

/* Who keeps bytes of its own (a parser does) finds nothing new in the channel. */
TEST(on_bytes_comes_as_often_as_it_is_asked_for_from_inside_too)
{
    open_server();
    say(UPGRADE("/"));
    bytes_count = 0;
    wakes       = 3;
    channel_wake(channel);
    settle(loop);
    CHECK_INT(bytes_count, 4);
    settle(loop);
    CHECK_INT(bytes_count, 4);
    close_server();
}

int main(void)
{
    return check_run();
}
