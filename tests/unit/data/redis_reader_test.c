#include "data/redis_reader.h"

#include "base/buf.h"
#include "base/err.h"
#include "data/redis_reply.h"
#include "support/check.h"

static struct redis_reader *reader;
static struct buf           reply;
static struct err           err;

static void open_reader(void)
{
    CHECK_INT(redis_reader_open(&reader, &err), 0);
    buf_init(&reply, REDIS_REPLY_BYTES_MAX);
}

static void close_reader(void)
{
    redis_reader_close(reader);
    buf_fini(&reply);
}

static int feed(const char *bytes)
{
    return redis_reader_feed(reader, bytes, strlen(bytes), &err);
}

static int next(void)
{
    return redis_reader_next(reader, &reply, &err);
}

/* "[a 1 nil]": what is left in REST, as text. */
static void show(struct str *rest, char *to, size_t room)
{
    struct reply_node node;
    size_t            used = 0;

    if (!reply_next(rest, &node))
        return;
    switch (node.kind) {
    case REPLY_TEXT: snprintf(to, room, "'%.*s'", STR_ARG(node.text)); break;
    case REPLY_STATUS: snprintf(to, room, "+%.*s", STR_ARG(node.text)); break;
    case REPLY_FAULT: snprintf(to, room, "-%.*s", STR_ARG(node.text)); break;
    case REPLY_INTEGER: snprintf(to, room, "%lld", (long long)node.number); break;
    case REPLY_NIL: snprintf(to, room, "nil"); break;
    case REPLY_ARRAY:
        used += (size_t)snprintf(to, room, "[");
        for (int64_t i = 0; i < node.number; i++) {
            show(rest, to + used, room - used);
            used += strlen(to + used);
            used += (size_t)snprintf(to + used, room - used, i + 1 < node.number ? " " : "");
        }
        snprintf(to + used, room - used, "]");
        break;
    }
}

static const char *shown(void)
{
    static char text[512];
    struct str  rest = buf_str(&reply);

    text[0] = '\0';
    show(&rest, text, sizeof(text));
    CHECK_INT(rest.len, 0);
    buf_clear(&reply);
    return text;
}

static void check_shown(const char *want)
{
    const char *got = shown();

    CHECK_STR(got, want);
}

TEST(each_kind_of_reply_is_read)
{
    open_reader();
    CHECK_INT(feed("+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n"), 0);
    CHECK_INT(next(), 1);
    check_shown("+OK");
    CHECK_INT(next(), 1);
    check_shown("-ERR no");
    CHECK_INT(next(), 1);
    check_shown("-7");
    CHECK_INT(next(), 1);
    check_shown("'a\r\n'");
    CHECK_INT(next(), 1);
    check_shown("nil");
    CHECK_INT(next(), 1);
    check_shown("nil");
    CHECK_INT(next(), 1);
    check_shown("[]");
    CHECK_INT(next(), 1);
    check_shown("''");
    CHECK_INT(next(), 0);
    close_reader();
}

TEST(arrays_nest_and_may_come_byte_by_byte)
{
    static const char BYTES[] = "*3\r\n*2\r\n$1\r\na\r\n:1\r\n$-1\r\n*1\r\n*1\r\n-ERR x\r\n";

    open_reader();
    for (size_t i = 0; i + 1 < sizeof(BYTES); i++) {
        CHECK_INT(next(), 0);
        CHECK_INT(redis_reader_feed(reader, &BYTES[i], 1, &err), 0);
    }
    CHECK_INT(next(), 1);
    check_shown("[['a' 1] nil [[-ERR x]]]");
    close_reader();
}

TEST(a_reply_can_be_skipped_whole)
{
    struct str rest;

    open_reader();
    CHECK_INT(feed("*2\r\n*1\r\n:1\r\n:2\r\n:3\r\n"), 0);
    CHECK_INT(next(), 1);
    CHECK_INT(next(), 1);
    rest = buf_str(&reply);
    CHECK(reply_skip(&rest));
    CHECK(reply_skip(&rest));
    CHECK(!reply_skip(&rest));
    close_reader();
}

TEST(other_protocols_are_an_error)
{
    open_reader();
    CHECK_INT(feed("HTTP/1.1 400 Bad Request\r\n\r\n"), 0);
    CHECK_INT(next(), ERR_INVALID);
    CHECK(strstr(err.text, "not the protocol"));
    close_reader();
}

TEST(an_array_that_only_claims_to_be_large_takes_no_memory)
{
    open_reader();
    CHECK_INT(feed("*2147483647\r\n:1\r\n"), 0);
    CHECK_INT(next(), 0);
    close_reader();
}

TEST(a_reply_has_its_bound)
{
    static char chunk[1024 * 1024];
    int         rc = 0;

    open_reader();
    CHECK_INT(feed("$200000000\r\n"), 0);
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = redis_reader_feed(reader, chunk, sizeof(chunk), &err);
    CHECK_INT(rc, ERR_TOO_LARGE);
    close_reader();
}

TEST(nesting_has_its_bound)
{
    int rc = 0;

    open_reader();
    for (int i = 0; i < 1000 && rc == 0; i++) {
        CHECK_INT(feed("*1\r\n"), 0);
        rc = next();
    }
    CHECK(rc == ERR_TOO_LARGE || rc == ERR_INVALID); /* ours, or that of an old hiredis */
    close_reader();
}

TEST(a_reader_closed_while_it_is_used_stays_until_it_is_left)
{
    open_reader();
    redis_reader_enter(reader);
    redis_reader_close(reader);
    CHECK(!redis_reader_is_open(reader));
    CHECK(!redis_reader_leave(reader));
    buf_fini(&reply);
}

int main(void)
{
    return check_run();
}
