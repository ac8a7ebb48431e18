#include "http/h1_parse.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http/message.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 8192, .head_bytes = 32768, .fields = 100 };

static struct arena_pool pool;
static struct arena      arena;
static struct request    request;
static struct h1_body    body;
static struct h1_fault   fault;

/* Through the gate and the parser, as a connection does it. */
static bool parse(struct str head)
{
    struct h1_head_gate gate;

    arena_reset(&arena);
    h1_gate_init(&gate);
    CHECK_INT(h1_gate_head(&gate, &LIMITS, head.at, head.len), H1_DONE);
    return h1_parse_head(&arena, head, gate.fields, &request, &body, &fault);
}

#define CHECK_SPAN(got, want)                                                                      \
    do {                                                                                           \
        struct str span = (got);                                                                   \
        CHECK_MEM(span.at, span.len, want, sizeof(want) - 1);                                      \
    } while (0)

TEST(a_head_becomes_spans)
{
    CHECK(parse(STR("GET /a/b?c=d HTTP/1.1\r\nHost: example.org:80\r\nX-Abc:  v w\t \r\n"
                    "ACCEPT: */*\r\nEmpty:\r\n\r\n")));
    CHECK_SPAN(request.method, "GET");
    CHECK_INT(request.method_id, 1);
    CHECK_SPAN(request.target, "/a/b?c=d");
    CHECK_SPAN(request.path, "/a/b");
    CHECK_SPAN(request.query, "c=d");
    CHECK_SPAN(request.host, "example.org:80");
    CHECK_INT(request.version_minor, 1);
    CHECK_INT(request.field_count, 4);
    CHECK_SPAN(request.fields[1].name, "x-abc");
    CHECK_SPAN(request.fields[1].value, "v w");
    CHECK_INT(request.fields[1].id, FIELD_OTHER);
    CHECK_SPAN(request.fields[3].value, "");
    CHECK(request_field(&request, FIELD_ACCEPT) == &request.fields[2]);
    CHECK(request_field(&request, FIELD_COOKIE) == NULL);
    CHECK(request_field_by_name(&request, STR("empty")) == &request.fields[3]);
    CHECK(!request.has_body);
}

TEST(spans_outlive_the_bytes_they_came_from)
{
    char head[] = "GET /abc HTTP/1.1\r\nHost: a\r\n\r\n";

    CHECK(parse(str_make(head, sizeof(head) - 1)));
    memset(head, 'x', sizeof(head));
    CHECK_SPAN(request.path, "/abc");
    CHECK_SPAN(request.host, "a");
}

TEST(repeated_fields_are_known)
{
    CHECK(parse(STR("GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nX: 1\r\nCookie: b=2\r\n\r\n")));
    CHECK(request.repeated & 1u << FIELD_COOKIE);
    CHECK(!(request.repeated & 1u << FIELD_HOST));
    CHECK(request_field(&request, FIELD_COOKIE) == &request.fields[1]);
}

TEST(tabs_behind_a_length_are_blanks)
{
    CHECK(parse(STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\t\r\nX: a\tb\t \r\n\r\n")));
    CHECK_INT(request.content_length, 5);
    CHECK_SPAN(request.fields[2].value, "a\tb");
    CHECK(parse(STR("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\t \t\r\n\r\n")));
    CHECK(request.chunked);
}

TEST(methods_that_the_parser_does_not_know_are_501)
{
    CHECK(!parse(STR("FOO / HTTP/1.1\r\nHost: a\r\n\r\n")));
    CHECK_INT(fault.status, 501);
    CHECK(!parse(STR("GETX / HTTP/1.1\r\nHost: a\r\n\r\n")));
    CHECK_INT(fault.status, 501);
    CHECK(!parse(STR("get / HTTP/1.1\r\nHost: a\r\n\r\n")));
    CHECK_INT(fault.status, 501);
    CHECK(parse(STR("M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n")));
}

TEST(an_upgrade_is_not_obeyed)
{
    CHECK(parse(STR("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n")));
    CHECK(!request.has_body);
    CHECK(request.keep_alive);
}

/* Reads BYTES, STEP more at a time, into DATA; the last reading and what was used in *END. */
static enum h1_reading read_body(struct str bytes, size_t step, struct buf *data, size_t *end)
{
    size_t          at = 0, there = 0, used;
    struct str      piece;
    enum h1_reading reading = H1_MORE;

    while (reading == H1_MORE) {
        reading = h1_parse_body(&arena, &body, &LIMITS, bytes.at + at, there - at, &used, &piece,
                                &request);
        buf_add_str(data, piece);
        at += used;
        if (reading == H1_MORE && !used) {
            if (there == bytes.len)
                break;
            there = there + step < bytes.len ? there + step : bytes.len;
        }
    }
    *end = at;
    return reading;
}

static void check_body(const char *head, struct str bytes, struct str want, size_t want_end)
{
    for (size_t step = 1; step <= bytes.len; step++) {
        struct buf data;
        size_t     end;

        buf_init(&data, 1000);
        CHECK(parse(str_of(head)));
        CHECK_INT(read_body(bytes, step, &data, &end), H1_DONE);
        CHECK_MEM(data.at, data.len, want.at, want.len);
        CHECK_INT(end, want_end);
        buf_fini(&data);
    }
}

#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

TEST(bodies_come_whole_however_they_are_cut)
{
    check_body("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", STR("helloGET"),
               STR("hello"), 5);
    check_body(CHUNKED, STR("5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nGET"),
               STR("hello0123456789"), 42);
    check_body(CHUNKED, STR("0\r\n\r\nGET"), STR(""), 5);
    check_body(CHUNKED, STR("f\r\n0\r\n\r\n5\r\nhello\r\n\r\n0\r\n\r\n"),
               STR("0\r\n\r\n5\r\nhello\r\n"), 25);
    /* Upgrade and a chunked body: the parser stops at neither. */
    check_body("POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
               "Transfer-Encoding: chunked\r\n\r\n",
               STR("2\r\nhi\r\n0\r\n\r\n"), STR("hi"), 12);
}

TEST(trailers_are_kept_apart_from_fields)
{
    struct buf data;
    size_t     end;

    buf_init(&data, 1000);
    CHECK(parse(STR(CHUNKED)));
    CHECK_INT(read_body(STR("0\r\nX-Sum:  abc \r\nHost: evil\r\n\r\n"), 1, &data, &end), H1_DONE);
    CHECK_INT(request.trailer_count, 2);
    CHECK_SPAN(request.trailers[0].name, "x-sum");
    CHECK_SPAN(request.trailers[0].value, "abc");
    CHECK_INT(request.field_count, 2);
    CHECK_SPAN(request.host, "a");
    buf_fini(&data);
}

TEST(what_is_announced_is_known_before_it_comes)
{
    struct buf data;
    size_t     end;

    buf_init(&data, 1000);
    CHECK(parse(STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 77\r\n\r\n")));
    CHECK_INT(h1_body_announced(&body, &request), 77);
    CHECK(parse(STR(CHUNKED)));
    CHECK_INT(h1_body_announced(&body, &request), 0);
    CHECK_INT(read_body(STR("3\r\nabc\r\n100\r\n"), 100, &data, &end), H1_MORE);
    CHECK_INT(h1_body_announced(&body, &request), 0x103);
    buf_fini(&data);
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
