#include "http/h1_rules.h"

#include "base/arena.h"
#include "http/h1_parse.h"
#include "http/message.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 8192, .head_bytes = 32768, .fields = 100 };

static struct arena_pool pool;
static struct arena      arena;
static struct request    request;
static struct h1_fault   fault;

static bool parse(struct str head)
{
    struct h1_head_gate gate;
    struct h1_body      body;

    arena_reset(&arena);
    h1_gate_init(&gate);
    CHECK_INT(h1_gate_head(&gate, &LIMITS, head.at, head.len), H1_DONE);
    fault.status = 0;
    return h1_parse_head(&arena, head, gate.fields, &request, &body, &fault);
}

#define CHECK_SPAN(got, want)                                                                      \
    do {                                                                                           \
        struct str span = (got);                                                                   \
        CHECK_MEM(span.at, span.len, want, sizeof(want) - 1);                                      \
    } while (0)
#define CHECK_REFUSED(head, status_)                                                               \
    do {                                                                                           \
        CHECK(!parse(STR(head "\r\n")));                                                           \
        CHECK_INT(fault.status, status_);                                                          \
    } while (0)
#define CHECK_GOOD(head) CHECK(parse(STR(head "\r\n")))

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

TEST(host_is_needed_once)
{
    CHECK_REFUSED("GET / HTTP/1.1\r\n", 400);
    CHECK_REFUSED(GET "Host: a\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400);
    CHECK_GOOD("GET / HTTP/1.0\r\n");
    CHECK_SPAN(request.host, "");
    CHECK_GOOD("GET / HTTP/1.1\r\nHost:\r\n");
}

TEST(host_is_a_name_or_an_address_with_a_port)
{
    CHECK_GOOD("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n");
    CHECK_GOOD("GET / HTTP/1.1\r\nHost: a_b-c.example:\r\n");
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: a b\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: a/x\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: u@a\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: a:8o\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: :80\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: [::1\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: []\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: [::1]x\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nHost: caf\xe9\r\n", 400);
}

TEST(absolute_form_replaces_host_and_is_cut)
{
    CHECK_GOOD("GET HTTP://b:81/c?d HTTP/1.1\r\nHost: a\r\n");
    CHECK_SPAN(request.target, "/c?d");
    CHECK_SPAN(request.path, "/c");
    CHECK_SPAN(request.host, "b:81");
    CHECK_GOOD("GET http://b HTTP/1.1\r\nHost: a\r\n");
    CHECK_SPAN(request.target, "/");
    CHECK_GOOD("GET https://b?x=1 HTTP/1.1\r\nHost: a\r\n");
    CHECK_SPAN(request.target, "/?x=1");
    CHECK_SPAN(request.query, "x=1");
    CHECK_REFUSED("GET http:///x HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("GET http://u@b/ HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("GET http://b/ HTTP/1.1\r\n", 400);
}

TEST(targets_have_one_of_the_forms)
{
    CHECK_GOOD("OPTIONS * HTTP/1.1\r\nHost: a\r\n");
    CHECK_SPAN(request.path, "*");
    CHECK_GOOD("GET //b?c HTTP/1.1\r\nHost: a\r\n");
    CHECK_SPAN(request.path, "//b");
    CHECK_SPAN(request.host, "a");
    CHECK_REFUSED("GET * HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("OPTIONS *a HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("GET foo HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("GET /a/../b HTTP/1.1\r\nHost: a\r\n", 400);
    CHECK_REFUSED("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n", 501);
}

TEST(one_framing_and_no_doubt_about_it)
{
    CHECK_GOOD(POST "Content-Length: 0005\r\n");
    CHECK_INT(request.content_length, 5);
    CHECK(request.has_body);
    CHECK_GOOD(POST "Content-Length: 0\r\n");
    CHECK(!request.has_body);
    CHECK_GOOD(POST);
    CHECK(!request.has_body);
    CHECK_GOOD(POST "Transfer-Encoding: CHUNKED\r\n");
    CHECK(request.chunked && request.has_body);
    CHECK(request.content_length == UINT64_MAX);

    CHECK_REFUSED(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: 5\r\nContent-Length: 5\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: 5, 5\r\n", 400);
    CHECK_REFUSED(POST "Content-Length:\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: -0\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: +5\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: 5 5\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: 9223372036854775808\r\n", 400);
    CHECK_REFUSED(POST "Content-Length: 99999999999999999999999999\r\n", 400);
}

TEST(chunked_is_the_only_coding)
{
    CHECK_REFUSED(POST "Transfer-Encoding: gzip, chunked\r\n", 501);
    CHECK_REFUSED(POST "Transfer-Encoding: chunked, chunked\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: xchunked\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: chunked, identity\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: ,chunked\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400);
    CHECK_REFUSED(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400);
    CHECK_REFUSED("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400);
}

TEST(a_body_may_be_expected_to_be_wanted)
{
    CHECK_GOOD(POST "Expect: 100-Continue\r\nContent-Length: 5\r\n");
    CHECK(request.expects_continue);
    CHECK_GOOD(POST "Expect: 100-continue\r\n");
    CHECK(!request.expects_continue);
    CHECK_GOOD("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n");
    CHECK(!request.expects_continue);
    CHECK_REFUSED(POST "Expect: 200-maybe\r\n", 417);
    CHECK_REFUSED(POST "Expect: 100-continue\r\nExpect: 100-continue\r\n", 417);
}

TEST(close_wins_over_keep_alive)
{
    CHECK_GOOD(GET);
    CHECK(request.keep_alive);
    CHECK_GOOD(GET "Connection: close\r\n");
    CHECK(!request.keep_alive);
    CHECK_GOOD(GET "CONNECTION: keep-alive , CLOSE\r\n");
    CHECK(!request.keep_alive);
    CHECK_GOOD(GET "Connection: ,close\r\n");
    CHECK(!request.keep_alive);
    CHECK_GOOD(GET "Connection: keep-alive\r\nX: close\r\nConnection:\tclose\t\r\n");
    CHECK(!request.keep_alive);
    CHECK_GOOD(GET "Connection: closed, xclose\r\nProxy-Connection: close\r\n");
    CHECK(request.keep_alive);
    CHECK_GOOD("GET / HTTP/1.0\r\n");
    CHECK(!request.keep_alive);
    CHECK_GOOD("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n");
    CHECK(request.keep_alive);
    CHECK_GOOD("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n");
    CHECK(!request.keep_alive);
}

int main(void)
{
    int status;

    h1_parse_init();
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    status = check_run();
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return status;
}
