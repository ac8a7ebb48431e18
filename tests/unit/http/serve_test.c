/* A server on one end of a socket pair, what a client says on the other. SOCK_SEQPACKET keeps the
 * bounds of writes, so that a test can count them. */
#include "http/serve.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "ev/advance.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/exchange.h"
#include "http/message.h"
#include "net/addr.h"
#include "support/check.h"
#include "support/count_malloc.h"
#include "support/settle.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { PATIENCE_MS = 20000, HALF_CLOSE_MS = 20, TICKS_MS = 100 };

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static struct timer        patience;
static int                 client;
static char                received[256 * 1024];
static size_t              received_len;

/* What the app was told. */
static struct exchange *held; /* of "/hold" and its like: open, ours */
static unsigned      sent_count, gone_count, body_count, body_end_count, room_count, drained_count;
static enum gone_why gone_why;
static unsigned      refused_status;

/* --- the app -------------------------------------------------------------------------------------------- */

static void on_sent(struct exchange *ex)
{
    sent_count++;
}

static void on_gone(struct exchange *ex, enum gone_why why)
{
    gone_count++;
    gone_why = why;
    held     = NULL;
    exchange_work_let_go(ex);
    loop_break(loop);
}

static void on_body(struct exchange *ex)
{
    body_count++;
}

static void on_body_end(struct exchange *ex)
{
    body_end_count++;
}

static void on_room(struct exchange *ex)
{
    room_count++;
}

static const struct exchange_work work = { on_body, on_body_end, on_room, on_sent, on_gone };

static const struct answer OK = { 200, NULL, 0, STR_INIT("text/plain") };

static void on_request(struct exchange *ex, void *arg)
{
    if (str_starts_with(ex->request.path, STR("/hold"))) {
        ex->work = &work;
        held     = ex;
        return;
    }
    exchange_answer(ex, &OK, ex->request.path);
    exchange_work_let_go(ex);
}

static void on_refused(const struct http_refusal *refusal, void *arg)
{
    refused_status = refusal->status;
}

static void on_drained(void *arg)
{
    drained_count++;
    loop_break(loop);
}

/* --- the world -------------------------------------------------------------------------------------------- */

static void on_patience_over(struct timer *timer)
{
    fprintf(stderr, "nothing happened for %d ms\n", PATIENCE_MS);
    abort();
}

/* Until on_gone() or on_drained(). */
static void wait_for_news(void)
{
    timer_start(&patience, loop, PATIENCE_MS);
    loop_run(loop);
    timer_stop(&patience, loop);
}

static int connect_client(int type)
{
    struct addr peer = { .family = AF_UNIX };
    int         ends[2];

    if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends) < 0)
        abort();
    http_server_accept(server, ends[1], &peer);
    return ends[0];
}

static void open_server(void (*change)(struct http_limits *limits), int type)
{
    struct http_limits         limits;
    struct http_server_options options;

    sent_count = gone_count = body_count = body_end_count = room_count = drained_count = 0;
    refused_status                                                                     = 0;
    received_len                                                                       = 0;
    http_limits_init(&limits);
    if (change)
        change(&limits);
    arena_pool_init(&arenas, 64);
    if (loop_open(&loop, NULL) < 0)
        abort();
    options = (struct http_server_options){ .loop       = loop,
                                            .arenas     = &arenas,
                                            .limits     = &limits,
                                            .dispatch   = on_request,
                                            .on_refused = on_refused,
                                            .on_drained = on_drained };
    server  = http_server_open(&options);
    timer_init(&patience, on_patience_over);
    client = connect_client(type);
}

/* No time passes but by pass_ms(). */
static void open_held(void (*change)(struct http_limits *limits))
{
    open_server(change, SOCK_STREAM);
    loop_hold_clock(loop);
}

static void on_passed(void *arg)
{
    *(bool *)arg = true;
    loop_break(loop);
}

static void pass_ms(unsigned ms)
{
    struct advance advance;
    bool           has_passed = false;

    advance_init(&advance, loop, NULL, on_passed, &has_passed);
    advance_start(&advance, (uint64_t)ms * NS_PER_MS);
    while (!has_passed) /* on_gone() breaks the loop too */
        loop_run(loop);
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

static void say(const char *text)
{
    CHECK(send(client, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    settle(loop);
}

/* One write of the server; its length, 0 at the end, -1 for none. */
static ssize_t hear(void)
{
    ssize_t n = recv(client, received, sizeof(received) - 1, 0);

    received_len           = n > 0 ? (size_t)n : 0;
    received[received_len] = '\0';
    return n;
}

static bool heard(const char *text)
{
    return strstr(received, text) != NULL;
}

static unsigned count_of(const char *text)
{
    unsigned count = 0;

    for (const char *at = received; (at = strstr(at, text)); at++)
        count++;
    return count;
}

/* --- one write ---------------------------------------------------------------------------------------------- */

TEST(an_answer_is_one_write)
{
    open_server(NULL, SOCK_SEQPACKET);
    say(GET("/a"));
    CHECK(hear() > 0);
    CHECK(heard("HTTP/1.1 200 OK\r\n") && heard("\r\n\r\n/a"));
    CHECK_INT(hear(), -1);
    CHECK_INT(http_server_requests(server), 1);
    close_server();
}

TEST(pipelined_answers_are_one_write)
{
    open_server(NULL, SOCK_SEQPACKET);
    say(GET("/a") GET("/b") GET("/c"));
    CHECK(hear() > 0);
    CHECK_INT(count_of("HTTP/1.1 200 OK"), 3);
    CHECK(strstr(received, "/a") < strstr(received, "/b"));
    CHECK_INT(hear(), -1);
    close_server();
}

static void pipeline_of_two(struct http_limits *limits)
{
    limits->pipeline = 2;
}

TEST(a_turn_serves_so_many_requests_and_no_more)
{
    open_server(pipeline_of_two, SOCK_SEQPACKET);
    say(GET("/a") GET("/b") GET("/c"));
    CHECK(hear() > 0);
    CHECK_INT(count_of("HTTP/1.1 200 OK"), 2);
    CHECK(hear() > 0);
    CHECK_INT(count_of("HTTP/1.1 200 OK"), 1);
    close_server();
}

TEST(an_answer_does_not_wait_for_a_slow_one_behind_it)
{
    open_server(NULL, SOCK_SEQPACKET);
    say(GET("/a") GET("/hold") GET("/c"));
    CHECK(hear() > 0);
    CHECK_INT(count_of("HTTP/1.1 200 OK"), 1);
    CHECK_INT(hear(), -1);
    exchange_answer(held, &OK, STR("held"));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK(heard("held") && heard("/c"));
    close_server();
}

/* --- ends ------------------------------------------------------------------------------------------------------ */

TEST(sent_is_told_once_and_after_the_write)
{
    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    exchange_answer(held, &OK, STR("held"));
    CHECK_INT(sent_count, 0);
    settle(loop);
    CHECK_INT(sent_count, 1);
    CHECK(hear() > 0);
    CHECK(held->wire == NULL);
    CHECK_INT(exchange_answer(held, &OK, STR("")), EXCHANGE_GONE);
    exchange_work_let_go(held);
    close_server();
    CHECK_INT(sent_count, 1);
    CHECK_INT(gone_count, 0);
}

TEST(a_client_that_goes_is_told_once)
{
    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    exchange_head(held, &OK, ANSWER_LENGTH_UNKNOWN);
    settle(loop);
    close(client); /* with an unread answer: a reset */
    wait_for_news();
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_CLIENT);
    client = connect_client(SOCK_STREAM);
    close_server();
}

static void short_half_close(struct http_limits *limits)
{
    limits->half_close_ms = HALF_CLOSE_MS;
}

TEST(a_fin_without_an_answer_is_given_its_time)
{
    open_held(short_half_close);
    say(GET("/hold"));
    shutdown(client, SHUT_WR);
    pass_ms(HALF_CLOSE_MS - 1);
    CHECK_INT(gone_count, 0);
    pass_ms(TICKS_MS);
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_CLIENT);
    CHECK_INT(hear(), 0);
    close_server();
}

static void begin_unheard_stream(void)
{
    struct iovec piece = { "part 0", 6 };

    say(GET("/hold"));
    exchange_head(held, &OK, ANSWER_LENGTH_UNKNOWN);
    CHECK_INT(exchange_body(held, &piece, 1), 6);
    settle(loop);
}

static void begin_stream(void)
{
    begin_unheard_stream();
    CHECK(hear() > 0);
}

TEST(a_fin_inside_a_stream_is_given_its_time)
{
    open_held(short_half_close);
    begin_stream();
    shutdown(client, SHUT_WR);
    pass_ms(HALF_CLOSE_MS - 1);
    CHECK_INT(gone_count, 0);
    pass_ms(TICKS_MS);
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_CLIENT);
    close_server();
}

TEST(a_byte_sent_after_the_fin_makes_it_a_half_close)
{
    struct iovec piece = { "part 1", 6 };

    open_held(short_half_close);
    begin_stream();
    shutdown(client, SHUT_WR);
    settle(loop);
    CHECK_INT(exchange_body(held, &piece, 1), 6);
    pass_ms(5 * HALF_CLOSE_MS);
    CHECK_INT(gone_count, 0);
    CHECK_INT(exchange_end(held, NULL, 0), 0);
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0 && heard("part 1") && heard("0\r\n\r\n"));
    close_server();
}

TEST(who_takes_what_was_under_way_at_its_fin_still_listens)
{
    open_held(short_half_close);
    begin_unheard_stream();
    shutdown(client, SHUT_WR);
    settle(loop);
    CHECK(hear() > 0);
    pass_ms(5 * HALF_CLOSE_MS);
    CHECK_INT(gone_count, 0);
    exchange_end(held, NULL, 0);
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0 && heard("0\r\n\r\n"));
    close_server();
}

static void short_half_close_and_write(struct http_limits *limits)
{
    limits->half_close_ms = HALF_CLOSE_MS;
    limits->write_ms      = 300;
}

TEST(who_takes_nothing_after_its_fin_has_the_time_of_slow_readers)
{
    open_held(short_half_close_and_write);
    begin_unheard_stream();
    shutdown(client, SHUT_WR);
    pass_ms(5 * HALF_CLOSE_MS);
    CHECK_INT(gone_count, 0);
    pass_ms(300 + TICKS_MS);
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_CLIENT);
    close_server();
}

TEST(closing_the_server_tells_open_work)
{
    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    http_server_close(server);
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_SHUTDOWN);
    close(client);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

TEST(work_that_lets_go_is_answered_for)
{
    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK(heard("HTTP/1.1 500 ") && heard("Connection: close\r\n"));
    CHECK_INT(refused_status, 500);
    close_server();
}

static void short_write(struct http_limits *limits)
{
    limits->write_ms = 50;
}

TEST(who_does_not_read_is_cut)
{
    static char  bytes[64 * 1024];
    struct iovec piece = { bytes, sizeof(bytes) };

    open_server(short_write, SOCK_STREAM);
    say(GET("/hold"));
    exchange_head(held, &OK, ANSWER_LENGTH_UNKNOWN);
    while (exchange_body(held, &piece, 1) > 0)
        settle(loop);
    wait_for_news();
    CHECK_INT(gone_count, 1);
    CHECK_INT(gone_why, GONE_TIMEOUT);
    close_server();
}

/* --- backpressure ------------------------------------------------------------------------------------------------- */

TEST(a_body_waits_for_room_and_is_told_of_it)
{
    static char  bytes[64 * 1024];
    struct iovec piece = { bytes, sizeof(bytes) };
    size_t       taken = 0, got = 0;
    ssize_t      n;

    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    exchange_head(held, &OK, 16 * 1024 * 1024);
    while ((n = exchange_body(held, &piece, 1)) > 0)
        taken += (size_t)n;
    CHECK_INT(n, EXCHANGE_WAIT);
    CHECK(taken < 2 * 1024 * 1024);
    CHECK_INT(room_count, 0);
    while (got < taken && (n = hear()) > 0) {
        got += (size_t)n;
        settle(loop);
    }
    CHECK_INT(room_count, 1);
    CHECK(exchange_body(held, &piece, 1) > 0);
    exchange_abort(held, GONE_ERROR);
    exchange_work_let_go(held);
    settle(loop);
    close_server();
}

TEST(more_than_was_announced_is_refused_and_less_is_cut)
{
    struct iovec piece = { "0123456789", 10 };

    open_server(NULL, SOCK_STREAM);
    say(GET("/hold"));
    exchange_head(held, &OK, 15);
    CHECK_INT(exchange_body(held, &piece, 1), 10);
    CHECK_INT(exchange_body(held, &piece, 1), EXCHANGE_INVALID);
    exchange_end(held, NULL, 0);
    CHECK_INT(held->answer_state, ANSWER_ABORTED);
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK(heard("Content-Length: 15\r\n"));
    CHECK_INT(hear(), 0);
    close_server();
}

TEST(a_body_is_read_only_as_far_as_it_is_wanted)
{
    static char bytes[64 * 1024];
    size_t      sent = 0;
    ssize_t     n;

    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    for (unsigned i = 0; i < 100 && (n = send(client, bytes, sizeof(bytes), MSG_NOSIGNAL)) > 0;
         i++) {
        sent += (size_t)n;
        settle(loop);
    }
    CHECK_INT(held->body_bytes, 0);
    CHECK_INT(body_count, 0);
    exchange_want(held);
    settle(loop);
    CHECK(body_count > 0);
    CHECK(exchange_untaken(held) >= 64 * 1024 && exchange_untaken(held) <= 128 * 1024);
    CHECK(held->body_bytes < sent);
    while (exchange_take_body(held, SIZE_MAX).len)
        settle(loop);
    CHECK_INT(held->body_bytes, sent);
    exchange_answer(held, &OK, STR(""));
    exchange_work_let_go(held);
    settle(loop);
    close_server();
}

TEST(a_body_that_came_with_the_head_is_there_at_once)
{
    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    CHECK_INT(held->request_state, REQUEST_ENDED);
    exchange_want(held);
    CHECK(str_is(exchange_take_body(held, 3), STR("hel")));
    CHECK(str_is(exchange_take_body(held, SIZE_MAX), STR("lo")));
    CHECK_INT(exchange_take_body(held, SIZE_MAX).len, 0);
    CHECK_INT(body_end_count, 0);
    exchange_answer(held, &OK, STR(""));
    exchange_work_let_go(held);
    settle(loop);
    close_server();
}

TEST(behind_the_answer_there_is_no_body_any_more)
{
    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    exchange_want(held);
    CHECK(str_is(exchange_take_body(held, 3), STR("hel")));
    exchange_answer(held, &OK, STR(""));
    settle(loop);
    CHECK_INT(sent_count, 1);
    CHECK_INT(exchange_untaken(held), 0);
    CHECK_INT(exchange_take_body(held, SIZE_MAX).len, 0);
    exchange_work_let_go(held);
    close_server();
}

/* A socket that is closed takes no more bytes: send() would fail, and by TCP a reset would come back. */
TEST(who_asked_for_the_close_and_still_sends_its_body_is_not_reset)
{
    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n");
    exchange_answer(held, &(struct answer){ .status = 413 }, STR(""));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK_INT(hear(), 0);
    CHECK_INT(http_server_connections(server), 1);
    say("hello");
    say("world");
    CHECK_INT(http_server_connections(server), 1);
    close_server();
}

TEST(who_asked_for_the_close_and_was_read_to_the_end_is_closed_at_once)
{
    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
    exchange_answer(held, &OK, STR(""));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK_INT(hear(), 0);
    CHECK_INT(http_server_connections(server), 0);
    close_server();
}

TEST(a_limit_of_the_works_own_holds)
{
    open_server(NULL, SOCK_STREAM);
    say("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
    held->body_limit = 4;
    exchange_want(held);
    CHECK_INT(held->request_state, REQUEST_BROKEN);
    CHECK_INT(held->request_fault, 413);
    CHECK_INT(body_end_count, 0);
    exchange_answer(held, &(struct answer){ .status = 413 }, STR(""));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK(heard("Connection: close\r\n"));
    close_server();
}

/* --- draining --------------------------------------------------------------------------------------------------------- */

TEST(draining_ends_idle_connections_and_lets_answers_finish)
{
    int other;

    open_server(NULL, SOCK_STREAM);
    say(GET("/a"));
    CHECK(hear() > 0);
    other  = client;
    client = connect_client(SOCK_STREAM);
    say(GET("/hold"));
    http_server_drain(server);
    settle(loop);
    CHECK_INT(recv(other, received, sizeof(received), 0), 0); /* FIN at once */
    CHECK_INT(hear(), -1);
    exchange_answer(held, &OK, STR("held"));
    exchange_work_let_go(held);
    settle(loop);
    CHECK(hear() > 0);
    CHECK(heard("Connection: close\r\n") && heard("held"));
    CHECK_INT(drained_count, 0);
    close(other);
    close(client);
    wait_for_news();
    CHECK_INT(drained_count, 1);
    client = connect_client(SOCK_STREAM);
    say(GET("/late"));
    CHECK(hear() > 0);
    CHECK(heard("/late") && heard("Connection: close\r\n"));
    close_server();
}

TEST(draining_without_connections_is_over_at_once)
{
    open_server(NULL, SOCK_STREAM);
    close(client);
    settle(loop);
    http_server_drain(server);
    wait_for_news();
    CHECK_INT(drained_count, 1);
    client = connect_client(SOCK_STREAM);
    close_server();
}

/* --- memory -------------------------------------------------------------------------------------------------------------- */

#ifdef COUNTS_MALLOC

TEST(a_warm_server_allocates_nothing)
{
    static const char POST[] = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    unsigned long     before;

    open_server(NULL, SOCK_STREAM);
    for (unsigned i = 0; i < 3; i++) {
        say(GET("/a") GET("/b"));
        say(POST);
        say("GET /half HT");
        say("TP/1.1\r\nHost: a\r\n\r\n");
        CHECK(hear() > 0);
    }
    before = malloc_count;
    for (unsigned i = 0; i < 100; i++) {
        say(GET("/a") GET("/b"));
        say(POST);
        say("GET /half HT");
        say("TP/1.1\r\nHost: a\r\n\r\n");
        CHECK(hear() > 0);
    }
    CHECK_INT(malloc_count - before, 0);
    close_server();
}

#endif

int main(void)
{
    return check_run();
}
