#include "http/h2_head.h"

#include "base/arena.h"
#include "http/message.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 40, .head_bytes = 300, .fields = 6 };

static struct arena_pool pool;
static struct arena      arena;
static struct h2_head    head;
static struct request    request;

static void add(const char *name, const char *value)
{
    h2_head_add(&head, str_of(name), false, str_of(value));
}

static void begin(const char *method, const char *path)
{
    arena_reset(&arena);
    request = (struct request){ 0 };
    h2_head_init(&head, &arena, &LIMITS);
    add(":method", method);
    add(":scheme", "http");
    add(":path", path);
}

static bool end(void)
{
    return h2_head_end(&head, &request, true);
}

#define CHECK_SPAN(got, want)                                                                      \
    do {                                                                                           \
        struct str span = (got);                                                                   \
        CHECK_MEM(span.at, span.len, want, sizeof(want) - 1);                                      \
    } while (0)
#define CHECK_REFUSED(status_)                                                                     \
    do {                                                                                           \
        CHECK(!end());                                                                             \
        CHECK_INT(head.fault.status, status_);                                                     \
    } while (0)

TEST(a_request_is_as_http1_has_it)
{
    begin("GET", "/a/b?c=d");
    add(":authority", "example.org:80");
    add("accept", "text/html");
    CHECK(end());
    CHECK_SPAN(request.method, "GET");
    CHECK_SPAN(request.target, "/a/b?c=d");
    CHECK_SPAN(request.path, "/a/b");
    CHECK_SPAN(request.query, "c=d");
    CHECK_SPAN(request.host, "example.org:80");
    CHECK_INT(request.version_major, 2);
    CHECK_INT(request.field_count, 2);
    CHECK_SPAN(request_field(&request, FIELD_HOST)->value, "example.org:80");
    CHECK_SPAN(request_field(&request, FIELD_ACCEPT)->value, "text/html");
    CHECK(!request.has_body && !request.upgrade.len && request.keep_alive);
}

TEST(cookies_are_joined_where_the_first_stood)
{
    begin("GET", "/");
    add(":authority", "a");
    add("cookie", "a=1");
    add("x", "y");
    add("cookie", "b=2");
    add("cookie", "c=3");
    CHECK(end());
    CHECK_INT(request.field_count, 3);
    CHECK_SPAN(request.fields[1].value, "a=1; b=2; c=3");
    CHECK_SPAN(request.fields[2].name, "x");
}

TEST(a_host_is_needed_and_is_one)
{
    begin("GET", "/");
    CHECK_REFUSED(400);
    begin("GET", "/");
    add(":authority", "a");
    add("host", "A");
    CHECK(end());
    CHECK_INT(request.field_count, 1);
    begin("GET", "/");
    add(":authority", "a");
    add("host", "b");
    CHECK_REFUSED(400);
    begin("GET", "/");
    add("host", "u@a");
    CHECK_REFUSED(400);
}

TEST(a_length_frames_nothing_and_is_kept)
{
    begin("POST", "/");
    add(":authority", "a");
    add("content-length", "12");
    CHECK(h2_head_end(&head, &request, false));
    CHECK_INT(request.content_length, 12);
    CHECK(request.has_body && !request.chunked);
    begin("POST", "/");
    add(":authority", "a");
    CHECK(h2_head_end(&head, &request, false));
    CHECK(request.has_body && request.chunked && request.content_length == UINT64_MAX);
}

TEST(limits_hold_while_fields_come_and_nothing_is_kept_beyond)
{
    begin("GET", "/a/target/longer/than/a/line/may/be");
    CHECK_REFUSED(414);
    CHECK_SPAN(request.method, "GET"); /* whether the answer has a body depends on it */
    begin("GET", "/");
    add(":authority", "a");
    for (unsigned i = 0; i < 5; i++)
        add("x", "y");
    CHECK(end());
    add("x", "y");
    CHECK_REFUSED(431);
    begin("GET", "/");
    add(":authority", "a");
    for (unsigned i = 0; i < 4; i++)
        add("x-name",
            "a value of some eighty bytes, so that four of these are more than a head may hold.");
    CHECK_REFUSED(431);
    CHECK(head.count < 5 && head.bytes > LIMITS.head_bytes);
}

TEST(a_tunnel_is_found_by_get)
{
    begin("CONNECT", "/chat");
    add(":protocol", "websocket");
    add(":authority", "a");
    CHECK(h2_head_end(&head, &request, false));
    CHECK_SPAN(request.method, "GET");
    CHECK_SPAN(request.upgrade, "websocket");
    CHECK(!request.has_body);
    begin("CONNECT", "/");
    add(":authority", "a");
    CHECK_REFUSED(501);
}

TEST(targets_are_refused_as_in_http1)
{
    static const char *const bad[] = {
        "", "x", "/a b", "/a#b", "*", "/../a", "/%2e%2E", "/\xc3\xa9"
    };

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin("GET", bad[i]);
        add(":authority", "a");
        CHECK_REFUSED(400);
    }
    begin("OPTIONS", "*");
    add(":authority", "a");
    CHECK(end());
}

TEST(expectations_are_one)
{
    begin("POST", "/");
    add(":authority", "a");
    add("expect", "100-Continue");
    CHECK(h2_head_end(&head, &request, false));
    CHECK(request.expects_continue);
    begin("POST", "/");
    add(":authority", "a");
    add("expect", "much");
    CHECK_REFUSED(417);
}

TEST(trailers_have_the_same_limits)
{
    arena_reset(&arena);
    h2_head_init(&head, &arena, &LIMITS);
    add("x-sum", "1");
    CHECK(h2_head_end_trailers(&head, &request));
    CHECK_INT(request.trailer_count, 1);
    for (unsigned i = 0; i < 10; i++)
        add("x", "y");
    CHECK(!h2_head_end_trailers(&head, &request));
}

int main(void)
{
    arena_pool_init(&pool, 8);
    arena_init(&arena, &pool);
    return check_run();
}
