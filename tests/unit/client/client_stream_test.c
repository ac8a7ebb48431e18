/* Calls that share connections of HTTP/2, against a server on a thread of its own. */
#include "client/client_call.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "ev/loop.h"
#include "client/client.h"
#include "net/dns.h"
#include "support/check.h"
#include "support/h2_server.h"

enum { CALLS_MAX = 12 };

static struct loop        *loop;
static struct dns         *dns;
static struct http_client *client;
static struct arena_pool   arenas;
static struct h2_server    server;

/* --- calls --------------------------------------------------------------------------------------------- */

struct asked {
    struct client_call call;
    char               body[256 * 1024];
    size_t             len;
    bool               over, reads_nothing;
};

static struct asked calls[CALLS_MAX];
static unsigned     awaited;

static void on_event(struct client_call *call)
{
    struct asked *asked = container_of(call, struct asked, call);
    ssize_t       n;

    if (call->has_head && !asked->reads_nothing)
        while ((n = client_read_body(call, asked->body + asked->len,
                                     sizeof(asked->body) - asked->len)) > 0)
            asked->len += (size_t)n;
    if (asked->over || !(call->fault || call->ended || (asked->reads_nothing && call->has_head)))
        return;
    asked->over = true;
    if (--awaited == 0)
        loop_break(loop);
}

static struct asked *prepare(unsigned index, const char *head)
{
    struct asked *asked = &calls[index];

    memset(asked, 0, sizeof(*asked));
    asked->call.target = (struct client_target){
        .key   = STR("h2|test"),
        .host  = STR("127.0.0.1"),
        .port  = server.thread.port,
        .is_h2 = true,
    };
    asked->call.head     = str_of(head);
    asked->call.on_event = on_event;
    return asked;
}

static void start(struct asked *asked)
{
    awaited++;
    client_call_start(&asked->call, client, loop, &arenas);
}

#define GET "GET /a HTTP/1.1\r\nHost: x.example\r\nAccept: */*\r\nConnection: close\r\n\r\n"

static struct asked *get(unsigned index)
{
    struct asked *asked = prepare(index, GET);

    start(asked);
    return asked;
}

static void run(void)
{
    loop_run(loop);
}

static void finish(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        client_call_close(&calls[i].call);
}

static void on_pause(struct timer *timer)
{
    loop_break(loop);
}

static void let_run(unsigned ms)
{
    struct timer pause;

    timer_init(&pause, on_pause);
    timer_start(&pause, loop, ms);
    loop_run(loop);
    timer_stop(&pause, loop);
}

static void set_up(h2_server_fn script, uint32_t streams, const struct client_options *options)
{
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    awaited = 0;
    arena_pool_init(&arenas, 4);
    CHECK(loop_open(&loop, &err) == 0);
    CHECK(dns_open(&dns, loop, NULL, &err) == 0);
    CHECK(http_client_open(&client, loop, dns, NULL, options, &err) == 0);
    h2_server_start(&server, script, streams);
}

static void tear_down(void)
{
    http_client_close(client);
    dns_close(dns);
    loop_close(loop);
    arena_pool_fini(&arenas);
    h2_server_stop(&server);
}

static void check_whole(const struct asked *asked, const char *body)
{
    CHECK(asked->call.ended);
    CHECK(!asked->call.fault);
    CHECK_INT(asked->call.response.status, 200);
    CHECK_MEM(asked->body, asked->len, body, strlen(body));
}

/* --- scripts ------------------------------------------------------------------------------------------- */

static bool answer(struct h2_peer *peer, int32_t id)
{
    h2_server_answer(peer, id, "200", "hello");
    return true;
}

/* When four of them wait, the last one first. */
static bool answer_by_four(struct h2_peer *peer, int32_t id)
{
    static int32_t waiting[4];
    unsigned       count = (peer->requests - 1) % 4;

    waiting[count] = id;
    if (count == 3)
        for (int i = 3; i >= 0; i--)
            h2_server_answer(peer, waiting[i], "200", "hello");
    return true;
}

static atomic_uint seen;

static bool say_nothing(struct h2_peer *peer, int32_t id)
{
    atomic_fetch_add(&seen, 1);
    return true;
}

static bool answer_once(struct h2_peer *peer, int32_t id)
{
    return peer->requests > 1 || answer(peer, id);
}

/* 64 MiB that mean nothing, unless the client closes. */
static bool flood(struct h2_peer *peer, int32_t id)
{
    static const char frame[9 + 16384] = { 0, 0x40, 0, 0x77 }; /* of a type that nobody knows */
    bool              is_open          = true;

    atomic_fetch_add(&seen, 1);
    for (unsigned i = 0; i < 4096 && is_open; i++)
        is_open = send(peer->fd, frame, sizeof(frame), MSG_NOSIGNAL) > 0;
    return is_open;
}

static bool refuse(struct h2_peer *peer, int32_t id)
{
    h2_server_reset(peer, id, NGHTTP2_REFUSED_STREAM);
    return true;
}

static bool break_off(struct h2_peer *peer, int32_t id)
{
    h2_server_reset(peer, id, NGHTTP2_INTERNAL_ERROR);
    return true;
}

static bool ask_for_http_1(struct h2_peer *peer, int32_t id)
{
    h2_server_reset(peer, id, NGHTTP2_HTTP_1_1_REQUIRED);
    return true;
}

static bool answer_and_leave(struct h2_peer *peer, int32_t id)
{
    h2_server_answer(peer, id, "200", "hello");
    h2_server_leave(peer, id, NGHTTP2_NO_ERROR);
    return true;
}

static bool close_at_second(struct h2_peer *peer, int32_t id)
{
    return peer->requests == 1 ? answer(peer, id) : false;
}

static bool tell_heads(struct h2_peer *peer, int32_t id)
{
    static char text[H2_SERVER_HEADS_MAX + H2_SERVER_BODY_MAX];

    snprintf(text, sizeof(text), "%s%.*s", peer->heads, (int)peer->body_len, peer->body);
    h2_server_answer(peer, id, "200", text);
    return true;
}

static char large[60000];

static bool answer_at_length(struct h2_peer *peer, int32_t id)
{
    memset(large, 'x', sizeof(large) - 1);
    h2_server_answer(peer, id, "200", large);
    return true;
}

/* --- sharing ------------------------------------------------------------------------------------------- */

TEST(calls_that_come_at_once_share_one_connection)
{
    set_up(answer_by_four, 100, NULL);
    for (unsigned i = 0; i < 8; i++)
        get(i);
    run();
    for (unsigned i = 0; i < 8; i++)
        check_whole(&calls[i], "hello");
    finish(8);
    CHECK_INT(http_client_stats(client).opened, 1);
    CHECK_INT(http_client_stats(client).reused, 7);
    CHECK_INT(http_client_stats(client).idle, 1);
    tear_down();
}

TEST(where_the_server_allows_no_more_another_connection_is_opened_and_no_more_than_there_may_be)
{
    struct client_options options = { .per_origin = 2 };

    set_up(answer, 2, &options);
    for (unsigned i = 0; i < 12; i++)
        get(i);
    run();
    for (unsigned i = 0; i < 12; i++)
        check_whole(&calls[i], "hello");
    finish(12);
    CHECK_INT(http_client_stats(client).opened, 2);
    CHECK_INT(http_client_stats(client).waiting, 0);
    tear_down();
}

TEST(a_head_becomes_fields_and_what_belongs_to_http_1_stays_behind)
{
    struct asked *asked;

    set_up(tell_heads, 100, NULL);
    asked = prepare(0, "POST /p?q=1 HTTP/1.1\r\nHost: b.example:81\r\nX-Name: A value\r\n"
                       "Transfer-Encoding: chunked\r\nKeep-Alive: 5\r\nCookie: a=b\r\n\r\n");
    asked->call.body = STR("text");
    start(asked);
    run();
    check_whole(asked, ":method: POST\n:scheme: http\n:authority: b.example:81\n:path: /p?q=1\n"
                       "x-name: A value\ncookie: a=b\ntext");
    finish(1);
    tear_down();
}

TEST(who_reads_nothing_holds_up_no_other)
{
    set_up(answer_at_length, 100, NULL);
    prepare(0, GET)->reads_nothing = true;
    start(&calls[0]);
    get(1);
    run();
    CHECK_INT(calls[1].len, sizeof(large) - 1);
    calls[0].reads_nothing = calls[0].over = false;
    awaited                                = 1;
    on_event(&calls[0].call);
    if (awaited)
        run();
    CHECK_INT(calls[0].len, sizeof(large) - 1);
    finish(2);
    tear_down();
}

/* --- ends ---------------------------------------------------------------------------------------------- */

TEST(a_call_that_is_closed_cancels_its_stream_and_the_connection_goes_on)
{
    atomic_store(&seen, 0);
    set_up(say_nothing, 1, &(struct client_options){ .per_origin = 1 });
    get(0);
    while (atomic_load(&seen) == 0)
        let_run(1);
    client_call_close(&calls[0].call);
    get(1); /* there is room for one stream alone */
    while (atomic_load(&seen) == 1)
        let_run(1);
    client_call_close(&calls[1].call);
    CHECK_INT(http_client_stats(client).opened, 1);
    tear_down();
}

TEST(a_refused_stream_was_not_sent_and_one_that_was_reset_was)
{
    set_up(refuse, 100, NULL);
    get(0);
    run();
    CHECK_STR(calls[0].call.fault, "closed");
    CHECK_INT(calls[0].call.sent, CALL_UNSENT);
    finish(1);
    tear_down();
    set_up(break_off, 100, NULL);
    get(0);
    run();
    CHECK_STR(calls[0].call.fault, "closed");
    CHECK_INT(calls[0].call.sent, CALL_SENT);
    CHECK_STR(calls[0].call.fault_text, "the server gave up the stream: INTERNAL_ERROR");
    finish(1);
    tear_down();
}

TEST(a_stream_that_the_server_wants_in_http_1_was_not_sent)
{
    set_up(ask_for_http_1, 100, NULL);
    get(0);
    run();
    CHECK_STR(calls[0].call.fault, "closed");
    CHECK_INT(calls[0].call.sent, CALL_FOR_H1);
    finish(1);
    tear_down();
}

TEST(behind_goaway_a_call_gets_another_connection)
{
    set_up(answer_and_leave, 100, NULL);
    for (unsigned i = 0; i < 3; i++) {
        get(0);
        run();
        check_whole(&calls[0], "hello");
        finish(1);
    }
    CHECK_INT(http_client_stats(client).opened, 3);
    CHECK_INT(http_client_stats(client).idle, 0);
    tear_down();
}

TEST(a_kept_connection_that_ends_under_a_call_may_have_been_stale)
{
    set_up(close_at_second, 100, NULL);
    get(0);
    run();
    finish(1);
    get(0);
    run();
    CHECK_STR(calls[0].call.fault, "closed");
    CHECK_INT(calls[0].call.sent, CALL_STALE);
    finish(1);
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

TEST(who_wants_a_fresh_connection_takes_none_that_lies_idle)
{
    set_up(answer, 100, NULL);
    get(0);
    run();
    finish(1);
    prepare(0, GET)->call.target.fresh = true;
    start(&calls[0]);
    run();
    check_whole(&calls[0], "hello");
    finish(1);
    CHECK_INT(http_client_stats(client).opened, 2);
    tear_down();
}

TEST(a_time_limit_ends_a_call_and_not_the_connection)
{
    set_up(say_nothing, 100, NULL);
    prepare(0, GET)->call.total_ms = 2000; /* the server says hello in it */
    start(&calls[0]);
    run();
    CHECK_STR(calls[0].call.fault, "timeout");
    finish(1);
    CHECK_INT(http_client_stats(client).idle, 1);
    tear_down();
}

TEST(a_connection_on_which_nothing_comes_is_not_asked_again)
{
    set_up(answer_once, 100, NULL);
    get(0);
    run();
    finish(1);
    prepare(0, GET)->call.total_ms = 30;
    start(&calls[0]);
    run();
    CHECK_STR(calls[0].call.fault, "timeout");
    finish(1);
    CHECK_INT(http_client_stats(client).opened, 1);
    CHECK_INT(http_client_stats(client).open, 0);
    get(0);
    run();
    check_whole(&calls[0], "hello");
    finish(1);
    CHECK_INT(http_client_stats(client).opened, 2);
    tear_down();
}

TEST(who_talks_without_end_to_nobody_is_not_listened_to)
{
    atomic_store(&seen, 0);
    set_up(flood, 100, NULL);
    get(0);
    while (atomic_load(&seen) == 0)
        let_run(1);
    client_call_close(&calls[0].call);
    for (unsigned i = 0; i < 4000 && http_client_stats(client).open; i++)
        let_run(5);
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

TEST(all_who_wait_for_one_connection_hear_that_there_is_none)
{
    set_up(answer, 100, NULL);
    h2_server_stop(&server);
    for (unsigned i = 0; i < 6; i++)
        get(i);
    run();
    for (unsigned i = 0; i < 6; i++)
        CHECK_STR(calls[i].call.fault, "refused");
    finish(6);
    http_client_close(client);
    dns_close(dns);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

int main(void)
{
    return check_run();
}
