#include "http/respond.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "http/message.h"
#include "support/check.h"

static struct buf        out;
static struct clock_date date;

static void begin(void)
{
    buf_fini(&out);
    buf_init(&out, 100000);
    clock_date_init(&date);
}

/* What was written, with the Date line's text replaced, as it changes. */
static const char *written(void)
{
    char *found;

    buf_add_byte(&out, '\0');
    found = strstr(out.at, "Date: ");
    if (found)
        memmove(found + 6, found + 6 + CLOCK_HTTP_DATE_LEN,
                strlen(found + 6 + CLOCK_HTTP_DATE_LEN) + 1);
    return out.at;
}

#define CHECK_WRITTEN(want)                                                                        \
    do {                                                                                           \
        const char *got = written();                                                               \
        CHECK_STR(got, want);                                                                      \
    } while (0)

TEST(a_head_has_its_lines_in_order)
{
    struct field  fields[] = { { STR("X-A"), STR("1"), 0 }, { STR("X-B"), STR(""), 0 } };
    struct answer answer   = { 200, fields, 2, STR("text/plain") };

    begin();
    respond_head(&out, &answer, RESPOND_LENGTH, 5, RESPOND_SAYS_NOTHING, &date);
    CHECK_WRITTEN("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
                  "X-A: 1\r\nX-B: \r\nDate: \r\n\r\n");
}

TEST(framing_and_persistence_are_the_wires)
{
    struct field  fields[] = { { STR("content-LENGTH"), STR("99"), 0 },
                               { STR("Transfer-Encoding"), STR("gzip"), 0 },
                               { STR("Connection"), STR("upgrade"), 0 },
                               { STR("Keep-Alive"), STR("9"), 0 },
                               { STR("X-A"), STR("1"), 0 } };
    struct answer answer   = { 404, fields, 5, STR("") };

    begin();
    respond_head(&out, &answer, RESPOND_CHUNKED, 0, RESPOND_SAYS_CLOSE, &date);
    CHECK_WRITTEN("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n"
                  "Date: \r\nConnection: close\r\n\r\n");
    begin();
    respond_head(&out, &answer, RESPOND_UNTIL_CLOSE, 0, RESPOND_SAYS_KEEP_ALIVE, &date);
    CHECK_WRITTEN("HTTP/1.1 404 Not Found\r\nX-A: 1\r\nDate: \r\nConnection: keep-alive\r\n\r\n");
}

TEST(a_date_of_the_answers_own_is_kept)
{
    struct field  field  = { STR("date"), STR("Sun, 06 Nov 1994 08:49:37 GMT"), 0 };
    struct answer answer = { 299, &field, 1, STR("") };

    begin();
    respond_head(&out, &answer, RESPOND_NO_BODY, 0, RESPOND_SAYS_NOTHING, &date);
    CHECK_WRITTEN("HTTP/1.1 299 Unknown\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
}

TEST(answers_without_a_body_have_no_type)
{
    struct answer answer = { 304, NULL, 0, STR("text/html") };

    begin();
    respond_head(&out, &answer, RESPOND_NO_BODY, 0, RESPOND_SAYS_NOTHING, &date);
    CHECK_WRITTEN("HTTP/1.1 304 Not Modified\r\nDate: \r\n\r\n");
}

TEST(every_known_status_line_fits)
{
    begin();
    for (unsigned status = 200; status < 600; status++) {
        struct answer answer = { status, NULL, 0, STR("") };

        respond_head(&out, &answer, RESPOND_LENGTH, UINT64_MAX, RESPOND_SAYS_KEEP_ALIVE, &date);
        CHECK(!out.failed);
        CHECK(out.len <= out.room);
        CHECK(status_reason(status).len > 0);
    }
}

TEST(line_ends_never_reach_the_wire)
{
    static const struct str bad_values[] = { STR_INIT("a\r\nX: 1"), STR_INIT("a\nb"),
                                             STR_INIT("a\rb"), STR_INIT("a\0b"), STR_INIT("\x7f") };
    static const struct str bad_names[]  = { STR_INIT("a b"), STR_INIT("a:"), STR_INIT(""),
                                             STR_INIT("a\r\nb"), STR_INIT("\xc3\xa9") };
    struct field            field        = { STR("X-A"), STR("fine \t caf\xc3\xa9"), 0 };
    struct answer           answer       = { 200, &field, 1, STR("text/plain") };

    CHECK(respond_is_sound(&answer));
    for (unsigned i = 0; i < ARRAY_LEN(bad_values); i++) {
        field.value = bad_values[i];
        CHECK(!respond_is_sound(&answer));
        CHECK(!respond_are_sound_trailers(&field, 1));
    }
    field.value = STR("v");
    for (unsigned i = 0; i < ARRAY_LEN(bad_names); i++) {
        field.name = bad_names[i];
        CHECK(!respond_is_sound(&answer));
    }
    field.name          = STR("x");
    answer.content_type = STR("text/html\r\nX: 1");
    CHECK(!respond_is_sound(&answer));
}

TEST(a_status_is_final_or_interim)
{
    struct answer answer = { 0, NULL, 0, STR("") };

    for (answer.status = 0; answer.status < 1000; answer.status++) {
        CHECK_INT(respond_is_sound(&answer), answer.status >= 200 && answer.status < 600);
        CHECK_INT(respond_is_sound_interim(&answer),
                  answer.status >= 100 && answer.status < 200 && answer.status != 101);
    }
}

TEST(chunks_have_hexadecimal_sizes)
{
    struct field trailer = { STR("X-Sum"), STR("abc"), 0 };

    begin();
    respond_chunk_line(&out, 1);
    respond_chunk_line(&out, 0xabc0);
    respond_chunk_line(&out, UINT64_MAX);
    respond_last_chunk(&out, NULL, 0);
    respond_last_chunk(&out, &trailer, 1);
    CHECK_WRITTEN("1\r\nabc0\r\nffffffffffffffff\r\n0\r\n\r\n0\r\nX-Sum: abc\r\n\r\n");
}

TEST(interim_answers_have_no_date)
{
    struct field  link   = { STR("Link"), STR("</a.css>; rel=preload"), 0 };
    struct answer answer = { 103, &link, 1, STR("") };

    begin();
    respond_interim(&out, &answer);
    CHECK_WRITTEN("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
}

TEST(a_problem_is_json)
{
    begin();
    respond_problem(&out, 400, "\"*\" is wrong", false, &date);
    CHECK_WRITTEN("HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n"
                  "Content-Length: 62\r\nDate: \r\nConnection: close\r\n\r\n"
                  "{\"title\":\"Bad Request\",\"status\":400,\"detail\":\"\\\"*\\\" is wrong\"}");
    begin();
    respond_problem(&out, 408, "x", true, &date);
    CHECK(strstr(written(), "\r\n\r\n")[4] == '\0');
}

int main(void)
{
    int status = check_run();

    buf_fini(&out);
    return status;
}
