#include "http/h1_response.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http/h1_parse.h"
#include "http/message.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 100, .head_bytes = 400, .fields = 6 };

static struct arena_pool pool;
static struct arena      arena;
static struct response   response;
static struct h1_body    body;
static struct h1_fault   fault;
static char              got[512]; /* body data of the response read last */
static size_t            got_len, used_all;

enum outcome { WHOLE, MORE, REFUSED, BODY_REFUSED };

/* --- reading, with STEP bytes more each time ---------------------------------------------------------- */

static enum outcome read_body(struct str bytes, size_t at, size_t there, size_t step)
{
    got_len = 0;
    if (response.framing == RESPONSE_NO_BODY) {
        used_all = at;
        return WHOLE;
    }
    for (;;) {
        struct str      data;
        size_t          used;
        enum h1_reading reading = h1_parse_response_body(&arena, &body, &LIMITS, bytes.at + at,
                                                         there - at, &used, &data, &response);

        CHECK(got_len + data.len < sizeof(got));
        if (data.len)
            memcpy(got + got_len, data.at, data.len);
        got_len += data.len;
        at += used;
        used_all = at;
        if (reading == H1_REFUSED) {
            fault = body.gate.fault;
            return BODY_REFUSED;
        }
        if (reading == H1_DONE)
            return WHOLE;
        if (!used && there == bytes.len)
            return MORE;
        if (!used)
            there = there + step < bytes.len ? there + step : bytes.len;
    }
}

static enum outcome read_cut(struct str bytes, bool answers_head, size_t step)
{
    struct h1_head_gate gate;
    enum h1_reading     reading = H1_MORE;
    size_t              there   = 0;

    arena_reset(&arena);
    h1_gate_init_response(&gate);
    while (reading == H1_MORE && there < bytes.len) {
        there   = there + step < bytes.len ? there + step : bytes.len;
        reading = h1_gate_head(&gate, &LIMITS, bytes.at, there);
    }
    if (reading == H1_REFUSED)
        fault = gate.fault;
    if (reading != H1_DONE)
        return reading == H1_MORE ? MORE : REFUSED;
    if (!h1_parse_response_head(&arena, str_make(bytes.at, gate.scanned), gate.fields, answers_head,
                                &response, &body, &fault))
        return REFUSED;
    return read_body(bytes, gate.scanned, there, step);
}

/* However the bytes are cut, what comes out is the same. */
static enum outcome read_response(struct str bytes, bool answers_head)
{
    enum outcome outcome = read_cut(bytes, answers_head, bytes.len);
    struct str   text    = str_make(got, got_len);
    char         whole[sizeof(got)];

    memcpy(whole, text.at, text.len);
    fault = (struct h1_fault){ 0 };
    for (size_t step = 1; step < bytes.len; step++) {
        CHECK_INT(read_cut(bytes, answers_head, step), outcome);
        if (outcome == WHOLE)
            CHECK_MEM(got, got_len, whole, text.len);
    }
    if (outcome == REFUSED || outcome == BODY_REFUSED)
        CHECK(fault.reason != NULL);
    return outcome;
}

#define READ(bytes)          read_response(STR(bytes), false)
#define CHECK_REFUSED(bytes) CHECK_INT(READ(bytes), REFUSED)
#define CHECK_BODY(bytes, want)                                                                    \
    do {                                                                                           \
        CHECK_INT(READ(bytes), WHOLE);                                                             \
        CHECK_MEM(got, got_len, want, sizeof(want) - 1);                                           \
    } while (0)

/* --- heads ----------------------------------------------------------------------------------------------- */

TEST(a_response_has_status_fields_and_a_body_of_its_length)
{
    CHECK_BODY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\t\r\n\r\nhello", "hello");
    CHECK_INT(response.status, 200);
    CHECK_INT(response.framing, RESPONSE_LENGTH);
    CHECK_INT(response.field_count, 2);
    CHECK_MEM(response.fields[1].name.at, response.fields[1].name.len, "x-a", 3);
    CHECK_MEM(response.fields[1].value.at, response.fields[1].value.len, "b", 1);
    CHECK(response.keep_alive);
}

TEST(a_reason_may_be_empty_or_missing_or_in_any_bytes)
{
    CHECK_BODY("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", "a");
    CHECK_BODY("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", "a");
    CHECK_BODY("HTTP/1.1 599 \xc3\xa4 b\r\nContent-Length: 1\r\n\r\na", "a");
}

TEST(a_status_line_has_one_form)
{
    CHECK_REFUSED("HTTP/2 200 OK\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 20 OK\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 2000 OK\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1  200 OK\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 600 OK\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 099 OK\r\n\r\n");
    CHECK_REFUSED("http/1.1 200 OK\r\n\r\n");
    CHECK_REFUSED("ICY 200 OK\r\n\r\n");
    CHECK_REFUSED("\r\nHTTP/1.1 200 OK\r\n\r\n");
    CHECK_REFUSED("<html>\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1\t200 OK\r\n\r\n");
}

TEST(lines_end_in_crlf_and_fields_are_well_formed)
{
    CHECK_REFUSED("HTTP/1.1 200 OK\n\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nA : b\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nA\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n");
}

TEST(heads_at_their_limits_pass_and_one_more_is_refused)
{
    char text[600] = "HTTP/1.1 200 ";
    int  n         = 13;

    memset(text + n, 'r', 87); /* a status line of 100 bytes */
    memcpy(text + 100, "\r\nContent-Length: 0\r\nA: ", 24);
    n = 124;
    memset(text + n, 'v', 400 - 2 - n); /* the empty line is not counted */
    memcpy(text + 398, "\r\n\r\n", 4);
    CHECK_INT(read_response(str_make(text, 402), false), WHOLE);
    memcpy(text + 398, "v\r\n\r\n", 5);
    CHECK_INT(read_response(str_make(text, 403), false), REFUSED);

    memset(text, 0, sizeof(text));
    memcpy(text, "HTTP/1.1 200 ", 13);
    memset(text + 13, 'r', 88);
    memcpy(text + 101, "\r\n\r\n", 4);
    CHECK_INT(read_response(str_make(text, 105), false), REFUSED);
    CHECK_REFUSED(
        "HTTP/1.1 200 OK\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\nF: 1\r\nG: 1\r\n\r\n");
}

/* --- framing ---------------------------------------------------------------------------------------------- */

TEST(no_body_follows_head_204_304_and_1xx)
{
    CHECK_INT(read_response(STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), true), WHOLE);
    CHECK_INT(response.framing, RESPONSE_NO_BODY);
    CHECK_INT(response.content_length, 9);
    CHECK_INT(read_response(STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), true),
              WHOLE);
    CHECK_INT(READ("HTTP/1.1 204 None\r\n\r\n"), WHOLE);
    CHECK_INT(READ("HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n"), WHOLE);
    CHECK_INT(READ("HTTP/1.1 100 Continue\r\n\r\n"), WHOLE);
    CHECK_INT(response.framing, RESPONSE_NO_BODY);
    CHECK_INT(READ("HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n"), WHOLE);
}

TEST(without_length_or_chunks_a_body_ends_with_the_connection)
{
    CHECK_INT(READ("HTTP/1.1 200 OK\r\n\r\nas it comes"), MORE);
    CHECK_INT(response.framing, RESPONSE_UNTIL_CLOSE);
    CHECK(!response.keep_alive);
    CHECK_MEM(got, got_len, "as it comes", 11);
}

TEST(chunks_and_trailers_are_read)
{
    CHECK_BODY("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
               "5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX-Sum: 1\r\nX-B: c\r\n\r\n",
               "hello!");
    CHECK_INT(response.trailer_count, 2);
    CHECK_MEM(response.trailers[0].name.at, response.trailers[0].name.len, "x-sum", 5);
    CHECK(response.keep_alive);
}

TEST(what_follows_a_body_is_left_unread)
{
    CHECK_INT(read_cut(STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"), false, 100), WHOLE);
    CHECK_INT(used_all, sizeof("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na") - 1);
}

TEST(malformed_chunks_are_refused)
{
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    CHECK_INT(READ(CHUNKED "x\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "1\r\nab\r\n0\r\n\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "1\na\r\n0\r\n\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "-1\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "fffffffffffffffff\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "0\r\nA : b\r\n\r\n"), BODY_REFUSED);
    CHECK_INT(READ(CHUNKED "2\r\na"), MORE);
}

TEST(two_framings_are_refused)
{
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n");
    CHECK_REFUSED(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(lengths_are_digits_and_codings_are_known)
{
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
    CHECK_REFUSED("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n");
    CHECK_REFUSED("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(persistence_follows_version_and_connection)
{
    READ("HTTP/1.1 204 A\r\nConnection: Close\r\n\r\n");
    CHECK(!response.keep_alive);
    READ("HTTP/1.1 204 A\r\nConnection: keep-alive, x\r\nConnection: close\r\n\r\n");
    CHECK(!response.keep_alive);
    READ("HTTP/1.0 204 A\r\n\r\n");
    CHECK(!response.keep_alive);
    READ("HTTP/1.0 204 A\r\nConnection: keep-alive\r\n\r\n");
    CHECK(response.keep_alive);
    READ("HTTP/1.1 204 A\r\n\r\n");
    CHECK(response.keep_alive);
}

/* What a 204 announces may come behind the next request, and pass for its response. */
TEST(a_connection_is_not_kept_behind_a_204_that_announces_a_body)
{
    READ("HTTP/1.1 204 A\r\nContent-Length: 1\r\n\r\n");
    CHECK(!response.keep_alive);
    READ("HTTP/1.1 204 A\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(!response.keep_alive);
    READ("HTTP/1.1 204 A\r\nContent-Length: 0\r\n\r\n");
    CHECK(response.keep_alive);
    READ("HTTP/1.1 304 A\r\nContent-Length: 1\r\n\r\n");
    CHECK(response.keep_alive);
}

int main(void)
{
    int failures;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    h1_parse_init();
    failures = check_run();
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return failures;
}
