#include "http/h1_gate.h"

#include "base/compiler.h"
#include "base/str.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 100, .head_bytes = 400, .fields = 5 };

struct verdict {
    enum h1_reading reading;
    unsigned        status;
    size_t          end; /* of what was read when the verdict fell */
};

static struct verdict verdict_of(enum h1_reading reading, const struct h1_head_gate *gate)
{
    return (struct verdict){ reading, gate->fault.status, gate->scanned };
}

static struct verdict read_whole(struct str head)
{
    struct h1_head_gate gate;

    h1_gate_init(&gate);
    return verdict_of(h1_gate_head(&gate, &LIMITS, head.at, head.len), &gate);
}

static struct verdict read_bytewise(struct str head)
{
    struct h1_head_gate gate;
    enum h1_reading     reading = H1_MORE;

    h1_gate_init(&gate);
    for (size_t len = 1; len <= head.len && reading == H1_MORE; len++)
        reading = h1_gate_head(&gate, &LIMITS, head.at, len);
    return verdict_of(reading, &gate);
}

/* However the bytes are cut, the verdict is the same. */
static struct verdict read_head(struct str head)
{
    struct verdict whole = read_whole(head), bytewise = read_bytewise(head);

    CHECK_INT(bytewise.reading, whole.reading);
    CHECK_INT(bytewise.status, whole.status);
    return whole;
}

#define CHECK_GOOD(head)                                                                           \
    do {                                                                                           \
        struct verdict good = read_head(STR(head));                                                \
        CHECK_INT(good.reading, H1_DONE);                                                          \
        CHECK_INT(good.end, sizeof(head) - 1);                                                     \
    } while (0)
#define CHECK_MORE(head) CHECK_INT(read_head(STR(head)).reading, H1_MORE)
#define CHECK_REFUSED(head, want_status)                                                           \
    do {                                                                                           \
        struct verdict refused = read_head(STR(head));                                             \
        CHECK_INT(refused.reading, H1_REFUSED);                                                    \
        CHECK_INT(refused.status, want_status);                                                    \
    } while (0)

TEST(well_formed_heads_pass)
{
    CHECK_GOOD("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_GOOD("GET / HTTP/1.0\r\n\r\n");
    CHECK_GOOD("GET / HTTP/1.9\r\n\r\n");
    CHECK_GOOD("OPTIONS * HTTP/1.1\r\n\r\n");
    CHECK_GOOD("M-SEARCH /a?b=\\^`{|}'[] HTTP/1.1\r\n!#$%&'*+-.^_`|~09Az:\r\n\r\n");
    CHECK_GOOD("GET / HTTP/1.1\r\nA:\t v\t\x80\xff w \t\r\n\r\n");
    CHECK_GOOD("\r\nGET / HTTP/1.1\r\n\r\n");
}

TEST(a_head_ends_where_the_empty_line_does)
{
    CHECK_INT(read_whole(STR("GET / HTTP/1.1\r\nA: b\r\n\r\nGET /2")).end, 24);
}

TEST(an_incomplete_head_wants_more)
{
    CHECK_MORE("\r\n");
    CHECK_MORE("\r");
    CHECK_MORE("GET / HT");
    CHECK_MORE("GET / HTTP/1.1\r");
    CHECK_MORE("GET / HTTP/1.1\r\nA: b\r\n\r");
}

TEST(lines_end_in_crlf_and_nothing_else)
{
    CHECK_REFUSED("GET / HTTP/1.1\n\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: b\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: b\r\n\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\rXA: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\n\rZ", 400);
    CHECK_REFUSED("\n", 400);
    CHECK_REFUSED("\r\r", 400);
}

TEST(more_than_one_empty_line_before_a_request_is_refused)
{
    CHECK_REFUSED("\r\n\r\n", 400);
}

TEST(control_characters_are_refused_before_the_line_ends)
{
    CHECK_REFUSED("GET /\x01", 400);
    CHECK_REFUSED("GET /a\0b HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("\x16\x03\x01", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: 12345678\x7f", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: 1234567\x1f", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA\0: b\r\n\r\n", 400);
}

TEST(the_request_line_has_one_form)
{
    CHECK_REFUSED("GET  / HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /  HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1 \r\n\r\n", 400);
    CHECK_REFUSED(" GET / HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET\t/\tHTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /\tHTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /a\tb HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /\r\n\r\n", 400);
    CHECK_REFUSED("GET HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("BAD\r\n\r\n", 400);
    CHECK_REFUSED("GET /\xe9 HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /#a HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET /\"<> HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("G(T / HTTP/1.1\r\n\r\n", 400);
    CHECK_REFUSED("MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / HTTP/1.1\r\n\r\n", 501);
}

TEST(only_http_1_is_spoken)
{
    CHECK_REFUSED("PRI * HTTP/2.0\r\n\r\n", 505);
    CHECK_REFUSED("GET / HTTP/0.9\r\n\r\n", 505);
    CHECK_REFUSED("GET / HTTP/9.9\r\n\r\n", 505);
    CHECK_REFUSED("GET / HTTP/1.10\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1\r\n\r\n", 400);
    CHECK_REFUSED("GET / http/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET / HXYZ/1.1\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTPX1.1\r\n\r\n", 400);
}

TEST(field_lines_have_one_form)
{
    CHECK_REFUSED("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA\t: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA B: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\n A: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA: b\r\n\t\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\n: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nAbc\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA\xe9: b\r\n\r\n", 400);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA(B: b\r\n\r\n", 400);
}

TEST(limits_hold_while_the_bytes_come)
{
    static char    bytes[1000];
    struct verdict verdict;

    memset(bytes, 'G', sizeof(bytes));
    verdict = read_head(str_make(bytes, LIMITS.line_bytes + 1));
    CHECK_INT(verdict.reading, H1_REFUSED);
    CHECK_INT(verdict.status, 414);
    CHECK_INT(read_head(str_make(bytes, LIMITS.line_bytes)).reading, H1_MORE);

    memcpy(bytes, "GET / HTTP/1.1\r\nA: ", 19);
    verdict = read_head(str_make(bytes, LIMITS.head_bytes + 1));
    CHECK_INT(verdict.reading, H1_REFUSED);
    CHECK_INT(verdict.status, 431);
    CHECK_INT(read_head(str_make(bytes, LIMITS.head_bytes)).reading, H1_MORE);
    CHECK_REFUSED("GET / HTTP/1.1\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n\r\n", 431);
    CHECK_GOOD("GET / HTTP/1.1\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n\r\n");
}

/* --- chunks ------------------------------------------------------------------------------------ */

static const struct h1_limits WIDE = { .line_bytes = 8192, .head_bytes = 32768, .fields = 100 };

/* Reads BODY offered STEP bytes more at a time; what is good moves on, as in a connection. */
static struct verdict read_body(struct str body, size_t step, struct h1_chunk_gate *gate)
{
    size_t          at = 0, there = 0, used;
    enum h1_reading reading = H1_MORE;

    h1_chunk_init(gate);
    while (reading == H1_MORE) {
        reading = h1_chunk_read(gate, &WIDE, body.at + at, there - at, &used);
        at += used;
        if (reading == H1_MORE && !used) {
            if (there == body.len)
                break;
            there = there + step < body.len ? there + step : body.len;
        }
    }
    return (struct verdict){ reading, gate->fault.status, at };
}

static struct verdict read_chunks(struct str body)
{
    struct h1_chunk_gate gate;
    struct verdict       whole = read_body(body, body.len, &gate);

    for (size_t step = 1; step < 4; step++) {
        struct verdict cut = read_body(body, step, &gate);

        CHECK_INT(cut.reading, whole.reading);
        CHECK_INT(cut.status, whole.status);
        if (whole.reading == H1_DONE)
            CHECK_INT(cut.end, whole.end);
    }
    return whole;
}

TEST(chunked_bodies_end_where_they_say)
{
    CHECK_INT(read_chunks(STR("5\r\nhello\r\n0\r\n\r\nGET")).end, 15);
    CHECK_INT(
        read_chunks(STR("5;a=\"b;c\"\r\nhello\r\nA ; x\r\n0123456789\r\n0;z\r\n\r\n")).reading,
        H1_DONE);
    CHECK_INT(
        read_chunks(STR("0000000000000005\r\nhello\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n")).reading,
        H1_DONE);
    CHECK_INT(read_chunks(STR("5\r\nhello\r\n0\r\n")).reading, H1_MORE);
}

TEST(malformed_chunks_are_refused)
{
    static const char *const bodies[] = {
        "\r\nhello",
        "g\r\n",
        "-5\r\n",
        "+5\r\n",
        "0x5\r\n",
        " 5\r\n",
        "\t5\r\n",
        "5.0\r\n",
        "5h\r\n",
        "\"5\"\r\n",
        "5 \r\n",
        "5 junk\r\n",
        "5\n",
        "5;a\nb\r\n",
        "5;a\rb\r\n",
        "5\t;a\r\n",
        "5\r\nhello\n",
        "5\r\nhelloX",
        "5\r\nhello\r\n\r\n",
        "5\r\nhello\rX",
        "10000000000000005\r\n",
        "0\r\n\rX",
        "0\r\n\n",
        "0\r\nbad line\r\n",
        "0\r\n X: 1\r\n",
    };

    for (unsigned i = 0; i < ARRAY_LEN(bodies); i++) {
        struct verdict verdict = read_chunks(str_of(bodies[i]));

        CHECK_INT(verdict.reading, H1_REFUSED);
        CHECK_INT(verdict.status, 400);
    }
    CHECK_INT(read_chunks(STR("5;a\0b\r\n")).status, 400);
}

TEST(chunk_sizes_add_up_without_wrapping)
{
    struct h1_chunk_gate gate;

    CHECK_INT(read_body(STR("ffffffffffffffff\r\n"), 3, &gate).status, 413);
    CHECK_INT(read_body(STR("7fffffffffffffff\r\n"), 3, &gate).reading, H1_MORE);
    CHECK(gate.announced == INT64_MAX);
    CHECK_INT(read_body(STR("3\r\nabc\r\nfffffffffffffffe\r\n"), 100, &gate).status, 413);
}

TEST(an_extension_is_bounded)
{
    static char          body[H1_EXTENSION_BYTES_MAX + 100];
    struct h1_chunk_gate gate;

    memset(body, 'e', sizeof(body));
    memcpy(body, "5;", 2);
    CHECK_INT(read_body(str_make(body, sizeof(body)), 1000, &gate).status, 400);
}

TEST(extensions_are_bounded_in_total)
{
    enum { ONE = sizeof("1;xx\r\nd\r\n") - 1, EXTENSION = sizeof(";xx") - 1 };
    static char          body[ONE * (H1_EXTENSION_BYTES_MAX / EXTENSION + 1)];
    struct h1_chunk_gate gate;

    for (size_t at = 0; at < sizeof(body); at += ONE)
        memcpy(body + at, "1;xx\r\nd\r\n", ONE);
    CHECK_INT(read_body(str_make(body, sizeof(body) - ONE), 1000, &gate).reading, H1_MORE);
    CHECK_INT(read_body(str_make(body, sizeof(body)), 1000, &gate).status, 400);
}

int main(void)
{
    return check_run();
}
