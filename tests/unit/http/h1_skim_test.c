#include "http/h1_skim.h"

#include "support/check.h"

static struct h1_skim skim;
static unsigned       answers;
static size_t         body_bytes;

static void count_body(struct h1_skim *self, struct str piece)
{
    body_bytes += piece.len;
}

static struct h1_skim_memo  memo;
static struct h1_skim_memo *memo_used; /* NULL, or that */

static void begin(void)
{
    memo = (struct h1_skim_memo){ 0 };
    skim = (struct h1_skim){ .on_body = count_body, .memo = memo_used };
    h1_skim_init(&skim);
    answers    = 0;
    body_bytes = 0;
}

/* Feeds TEXT in pieces of STEP bytes and counts the responses that end in it. */
static enum h1_skimming feed(struct str text, size_t step)
{
    enum h1_skimming outcome = H1_SKIM_MORE;

    while (text.len > 0 && outcome != H1_SKIM_WRONG) {
        size_t piece = text.len < step ? text.len : step, used;

        outcome = h1_skim_read(&skim, text.at, piece, &used);
        answers += outcome == H1_SKIM_DONE;
        CHECK(used <= piece && (used == piece || outcome != H1_SKIM_MORE));
        text = str_make(text.at + used, text.len - used);
    }
    return outcome;
}

/* However TEXT is cut, and also when all of it has been read before. */
static void check_split(struct str text, unsigned responses, size_t bytes)
{
    for (size_t i = 0; i < 2 * text.len; i++) {
        memo_used = i % 2 ? &memo : NULL;
        begin();
        CHECK(feed(text, i / 2 + 1) == H1_SKIM_DONE);
        CHECK(feed(text, i / 2 + 1) == H1_SKIM_DONE);
        CHECK_INT(answers, 2 * responses);
        CHECK_INT(body_bytes, 2 * bytes);
    }
}

TEST(each_response_ends_where_its_length_says_however_bytes_are_cut)
{
    check_split(STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
                    "HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n"
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
                3, 7);
}

TEST(chunks_and_trailers_belong_to_their_response)
{
    check_split(STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-T: 1\r\n\r\n"
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz"),
                2, 6);
}

TEST(interim_responses_are_passed_over)
{
    check_split(STR("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
                1, 1);
    CHECK_INT(skim.status, 200);
}

TEST(statuses_without_a_body_have_none)
{
    check_split(
        STR("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        3, 1);
}

TEST(an_answer_to_HEAD_has_no_body_whatever_it_announces)
{
    begin();
    h1_skim_expect(&skim, true);
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 100) == H1_SKIM_DONE);
    h1_skim_expect(&skim, false);
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 100) == H1_SKIM_DONE);
    CHECK_INT(answers, 2);
    CHECK_INT(body_bytes, 5);
}

TEST(a_body_without_a_length_ends_with_the_connection)
{
    begin();
    CHECK(feed(STR("HTTP/1.0 200 OK\r\n\r\nabc"), 100) == H1_SKIM_MORE);
    CHECK(h1_skim_close(&skim) == H1_SKIM_DONE);
    CHECK(!skim.keep_alive);
    CHECK_INT(body_bytes, 3);
}

TEST(an_end_between_responses_is_no_response_and_one_amid_is_wrong)
{
    begin();
    CHECK(h1_skim_close(&skim) == H1_SKIM_MORE);
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nContent-Le"), 100) == H1_SKIM_MORE);
    CHECK(h1_skim_close(&skim) == H1_SKIM_WRONG);
}

TEST(it_says_whether_the_connection_goes_on)
{
    begin();
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 100) == H1_SKIM_DONE);
    CHECK(skim.keep_alive);
    begin();
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 100) ==
          H1_SKIM_DONE);
    CHECK(!skim.keep_alive);
}

TEST(what_is_no_http_is_wrong)
{
    begin();
    CHECK(feed(STR("SSH-2.0-OpenSSH_9.2\r\n"), 100) == H1_SKIM_WRONG);
    begin();
    CHECK(feed(STR("HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n"), 100) == H1_SKIM_WRONG);
}

/* --- what has been read before ---------------------------------------------------------------------- */

#define KNOWN "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello"

static void begin_with_memo(void)
{
    memo_used = &memo;
    begin();
    CHECK(feed(STR(KNOWN), 100) == H1_SKIM_DONE);
    CHECK(memo.head_len > 0);
    skim.status = 0;
}

TEST(a_head_that_is_known_means_the_same_again)
{
    begin_with_memo();
    CHECK(feed(STR(KNOWN KNOWN KNOWN), 1000) == H1_SKIM_DONE);
    CHECK_INT(answers, 4);
    CHECK_INT(body_bytes, 20);
    CHECK_INT(skim.status, 201);
    CHECK(skim.keep_alive);
}

TEST(a_head_that_is_known_may_have_its_body_later)
{
    begin_with_memo();
    CHECK(feed(STR("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhe"), 1000) == H1_SKIM_MORE);
    CHECK(feed(STR("llo" KNOWN), 1000) == H1_SKIM_DONE);
    CHECK_INT(answers, 3);
    CHECK_INT(body_bytes, 15);
}

TEST(an_answer_to_HEAD_is_not_taken_for_the_known_one)
{
    begin_with_memo();
    h1_skim_expect(&skim, true);
    CHECK(feed(STR("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n"), 1000) == H1_SKIM_DONE);
    CHECK_INT(body_bytes, 5);
    h1_skim_expect(&skim, false);
    CHECK(feed(STR(KNOWN), 1000) == H1_SKIM_DONE);
    CHECK_INT(answers, 3);
    CHECK_INT(body_bytes, 10);
}

TEST(what_ends_the_connection_or_does_not_say_its_length_is_not_remembered)
{
    static const struct str OTHERS[] = {
        STR("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
        STR("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    };

    for (size_t i = 0; i < 3; i++) {
        memo_used = &memo;
        begin();
        CHECK(feed(OTHERS[i], 1000) == H1_SKIM_DONE);
        CHECK_INT(memo.head_len, 0);
    }
}

int main(void)
{
    return check_run();
}
