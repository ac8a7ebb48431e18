/* A server whose peers must say first whom they speak for, on one end of a socket pair; the client's
 * bytes come to it in whatever pieces the test sends. */
#include "http/conn_proxy.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve.h"
#include "net/addr.h"
#include "net/networks.h"
#include "support/check.h"
#include "support/settle.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LINE      "PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n"
#define LOCAL     "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
#define BINARY    "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\7\x0a\0\0\1\xdc\x04\1\xbb"

enum { SOON_MS = 20, NEVER_MS = 60000, PATIENCE_MS = 20000 };

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static struct networks     proxies;
static struct timer        patience;
static int                 client;
static char                received[64 * 1024];
static unsigned            refused_count, refused_status, drained_count;
static const char         *refused_reason;
static char                peers[256]; /* of the requests, in order */

/* --- the app -------------------------------------------------------------------------------------- */

static void on_request(struct exchange *ex, void *arg)
{
    static const struct answer OK = { 200, NULL, 0, STR_INIT("text/plain") };
    char                       peer[ADDR_TEXT_BYTES];
    size_t                     len = strlen(peers);

    snprintf(peers + len, sizeof(peers) - len, "%s ", addr_format(ex->peer, peer));
    exchange_answer(ex, &OK, ex->request.path);
    exchange_work_let_go(ex);
}

static void on_refused(const struct http_refusal *refusal, void *arg)
{
    refused_count++;
    refused_status = refusal->status;
    refused_reason = refusal->reason;
}

static void on_drained(void *arg)
{
    drained_count++;
}

/* --- the world -------------------------------------------------------------------------------------- */

static void open_server(const char *trusted, unsigned head_ms)
{
    struct addr                peer = { .family = AF_UNIX };
    struct http_limits         limits;
    struct http_server_options options = { .arenas     = &arenas,
                                           .limits     = &limits,
                                           .proxies    = &proxies,
                                           .dispatch   = on_request,
                                           .on_refused = on_refused,
                                           .on_drained = on_drained };
    struct str                 wrong;
    int                        ends[2];

    refused_count = refused_status = drained_count = 0;
    peers[0] = received[0] = '\0';
    CHECK(networks_parse(&proxies, str_of(trusted), &wrong));
    http_limits_init(&limits);
    limits.head_ms = head_ms;
    arena_pool_init(&arenas, 64);
    CHECK(loop_open(&loop, NULL) == 0);
    options.loop = loop;
    server       = http_server_open(&options);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client = ends[0];
    http_server_accept(server, ends[1], &peer);
}

static void close_server(void)
{
    close(client);
    settle(loop);
    CHECK_INT(http_server_connections(server), 0);
    http_server_close(server);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

static void say(struct str bytes)
{
    CHECK(send(client, bytes.at, bytes.len, MSG_NOSIGNAL) == (ssize_t)bytes.len);
    settle(loop);
}

/* All that is there. False: nothing. */
static bool hear(void)
{
    size_t  len = 0;
    ssize_t n;

    while ((n = recv(client, received + len, sizeof(received) - 1 - len, 0)) > 0)
        len += (size_t)n;
    received[len] = '\0';
    return len > 0;
}

static unsigned answers(void)
{
    unsigned count = 0;

    for (const char *at = received; (at = strstr(at, "HTTP/1.1 200 OK\r\n")); at++)
        count++;
    return count;
}

/* It has closed without a word. */
static bool is_closed(void)
{
    return !hear() && http_server_connections(server) == 0;
}

static void on_patience_over(struct timer *timer)
{
    abort();
}

static void wait_until_closed(void)
{
    timer_init(&patience, on_patience_over);
    timer_start(&patience, loop, PATIENCE_MS);
    while (http_server_connections(server))
        settle(loop);
    timer_stop(&patience, loop);
}

/* --- whole headers -------------------------------------------------------------------------------------- */

TEST(the_client_is_who_the_header_says)
{
    open_server("loopback", NEVER_MS);
    say(STR(LINE GET("/a")));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "192.0.2.7:56324 ");
    close_server();
}

TEST(a_header_stands_in_front_of_the_first_request_alone)
{
    open_server("loopback", NEVER_MS);
    say(STR(BINARY GET("/a") GET("/b")));
    CHECK(hear() && answers() == 2);
    say(STR(GET("/c")));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "192.0.2.7:56324 192.0.2.7:56324 192.0.2.7:56324 ");
    say(STR(LINE GET("/d")));
    CHECK(hear() && strstr(received, "400 Bad Request"));
    CHECK_INT(refused_status, 400);
    close_server();
}

TEST(a_header_may_come_byte_by_byte_and_alone)
{
    struct str all = STR(BINARY GET("/a"));

    open_server("loopback", NEVER_MS);
    for (size_t i = 0; i < all.len; i++)
        say(str_make(all.at + i, 1));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "192.0.2.7:56324 ");
    close_server();
    open_server("loopback", NEVER_MS);
    say(STR(LINE));
    CHECK(!hear());
    say(STR(GET("/a")));
    CHECK(hear() && answers() == 1);
    close_server();
}

TEST(a_proxy_that_speaks_for_itself_keeps_the_sockets_address)
{
    open_server("loopback", NEVER_MS);
    say(STR(LOCAL GET("/a")));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "unix: ");
    close_server();
}

TEST(others_speak_plain_http)
{
    open_server("10.0.0.0/8", NEVER_MS);
    say(STR(GET("/a")));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "unix: ");
    say(STR(LINE GET("/a")));
    CHECK(hear() && strstr(received, "400 Bad Request"));
    close_server();
}

/* --- what is none ------------------------------------------------------------------------------------------ */

TEST(without_a_header_it_closes_without_an_answer)
{
    open_server("loopback", NEVER_MS);
    say(STR(GET("/a")));
    CHECK(is_closed());
    CHECK_INT(refused_count, 1);
    CHECK_INT(refused_status, 0);
    CHECK_STR(refused_reason, "none came");
    CHECK_STR(peers, "");
    close_server();
}

TEST(a_header_that_ends_in_its_middle_is_refused)
{
    open_server("loopback", NEVER_MS);
    say(STR("PROXY TCP4 192"));
    CHECK_INT(refused_count, 0);
    shutdown(client, SHUT_WR);
    settle(loop);
    CHECK(is_closed());
    CHECK_STR(refused_reason, "it ended in its middle");
    CHECK_INT(refused_count, 1);
    close_server();
}

TEST(who_only_knocks_is_not_refused)
{
    open_server("loopback", NEVER_MS);
    shutdown(client, SHUT_WR);
    settle(loop);
    CHECK(is_closed());
    CHECK_INT(refused_count, 0);
    close_server();
}

TEST(half_a_header_has_the_time_of_a_head)
{
    open_server("loopback", SOON_MS);
    say(STR("PROXY TCP4 192"));
    wait_until_closed();
    CHECK(is_closed());
    CHECK_STR(refused_reason, "it took too long");
    CHECK_INT(refused_count, 1);
    close_server();
}

TEST(a_drain_lets_what_comes_behind_a_header_be_answered)
{
    open_server("loopback", NEVER_MS);
    say(STR("PROXY TCP4 192"));
    http_server_drain(server);
    settle(loop);
    CHECK_INT(http_server_connections(server), 1);
    say(STR(".0.2.7 10.0.0.1 56324 443\r\n" GET("/a")));
    CHECK(hear() && answers() == 1);
    CHECK_STR(peers, "192.0.2.7:56324 ");
    close_server();
}

TEST(the_end_of_a_drain_cuts_who_has_not_come_to_a_request)
{
    open_server("loopback", NEVER_MS);
    say(STR("PROXY TCP4 192"));
    http_server_drain(server);
    settle(loop);
    http_server_cut_handshakes(server);
    settle(loop);
    CHECK(is_closed());
    CHECK_INT(http_server_connections(server), 0);
    CHECK_INT(drained_count, 1);
    close_server();
}

TEST(the_end_of_a_drain_cuts_no_request)
{
    open_server("loopback", NEVER_MS);
    say(STR("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\nGET /a HT"));
    http_server_drain(server);
    settle(loop);
    http_server_cut_handshakes(server);
    say(STR("TP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(hear() && answers() == 1);
    close_server();
}

int main(void)
{
    return check_run();
}
