/* A load of HTTP/2 against a server that does what its script says. */
#include "load/load.h"

#include <stdio.h>

#include "http/message.h"
#include "support/h2_server.h"
#include "support/load_bed.h"
#include "support/scripted_server.h"

static struct h2_server server;

#define FIELDS                                                                                     \
    ":method"                                                                                      \
    "POST"                                                                                         \
    ":scheme"                                                                                      \
    "http"                                                                                         \
    ":authority"                                                                                   \
    "x"                                                                                            \
    ":path"                                                                                        \
    "/a"

/* Field by field, then a body of three bytes. */
static const char REQUEST[] = FIELDS "abc";

static struct field fields[4];

static void cut_fields(const char *at)
{
    static const size_t LENGTHS[] = { 7, 4, 7, 4, 10, 1, 5, 2 };

    for (int i = 0; i < 4; i++) {
        fields[i].name  = str_make(at, LENGTHS[2 * i]);
        fields[i].value = str_make(at + LENGTHS[2 * i], LENGTHS[2 * i + 1]);
        at += LENGTHS[2 * i] + LENGTHS[2 * i + 1];
    }
}

static void plan(uint16_t port)
{
    cut_fields(REQUEST);
    bed_plan(port);
    bed.plan.speech = LOAD_SPEAKS_H2;
    for (int i = 0; i < 2; i++)
        bed.requests[i] = (struct load_request){
            .bytes       = str_of(REQUEST),
            .fields      = fields,
            .field_count = 4,
            .body_at     = sizeof(FIELDS) - 1,
        };
}

static void bed_open(h2_server_fn script, uint32_t streams)
{
    h2_server_start(&server, script, streams);
    plan(server.thread.port);
}

static void run(void)
{
    run_alone();
    h2_server_stop(&server);
}

/* --- scripts ------------------------------------------------------------------------------------------------ */

static bool answer(struct h2_peer *peer, int32_t id)
{
    h2_server_answer(peer, id, "200", "hello");
    return true;
}

/* Answers when COUNT streams wait, the last one first. */
static bool answer_backwards(struct h2_peer *peer, int32_t id)
{
    static int32_t waiting[4];
    unsigned       count = (peer->requests - 1) % 4;

    waiting[count] = id;
    if (count == 3)
        for (int i = 3; i >= 0; i--)
            h2_server_answer(peer, waiting[i], "200", "hello");
    return true;
}

static bool answer_all_but_the_first(struct h2_peer *peer, int32_t id)
{
    if (peer->requests > 1)
        h2_server_answer(peer, id, "200", "hello");
    return true;
}

static bool refuse_each_other(struct h2_peer *peer, int32_t id)
{
    if (peer->requests % 2)
        h2_server_reset(peer, id, NGHTTP2_REFUSED_STREAM);
    else
        h2_server_answer(peer, id, "200", "hello");
    return true;
}

static bool reset(struct h2_peer *peer, int32_t id)
{
    h2_server_reset(peer, id, NGHTTP2_INTERNAL_ERROR);
    return true;
}

/* Three to a connection. */
static bool leave_after_three(struct h2_peer *peer, int32_t id)
{
    if (peer->requests == 3)
        h2_server_leave(peer, id, NGHTTP2_NO_ERROR);
    if (peer->requests <= 3)
        h2_server_answer(peer, id, "200", "hello");
    return true;
}

static bool close_unanswered(struct h2_peer *peer, int32_t id)
{
    return false;
}

enum { IDS = 5 };

/* Of the paths, then of the bodies. */
static char seen_ids[2 * IDS][LOAD_ID_BYTES + 1];

static bool keep_ids(struct h2_peer *peer, int32_t id)
{
    unsigned    index = peer->requests - 1;
    const char *path  = peer->heads;

    for (unsigned i = 0; i <= index; i++)
        path = strstr(path, ":path: /") + 8;
    memcpy(seen_ids[index], path, LOAD_ID_BYTES);
    memcpy(seen_ids[IDS + index], peer->body + (size_t)index * LOAD_ID_BYTES, LOAD_ID_BYTES);
    return answer(peer, id);
}

/* --- tests --------------------------------------------------------------------------------------------------- */

static void check_all_answered(uint64_t amount)
{
    CHECK_INT(bed.totals.sent, amount);
    CHECK_INT(bed.totals.statuses[200], amount);
    CHECK_INT(bed.failed, 0);
    CHECK_INT(under_way(), 0);
}

TEST(an_amount_is_sent_exactly_over_many_streams)
{
    bed_open(answer, 100);
    bed.plan.amount      = 1001;
    bed.plan.threads     = 2;
    bed.plan.connections = 5;
    bed.plan.pipelining  = 20;
    run();
    check_all_answered(1001);
    CHECK_INT(bed.totals.connections, 5);
    CHECK_INT(hist_count(&bed.latency), 1001);
}

TEST(streams_are_answered_in_any_order)
{
    bed_open(answer_backwards, 100);
    bed.plan.amount     = 400;
    bed.plan.pipelining = 4;
    run();
    check_all_answered(400);
}

TEST(no_more_streams_are_opened_than_the_server_allows)
{
    bed_open(answer_backwards, 4);
    bed.plan.amount     = 400;
    bed.plan.pipelining = 50;
    run();
    check_all_answered(400);
}

TEST(bodies_are_compared)
{
    bed_open(answer, 100);
    bed.requests[0].checks_body = true;
    bed.requests[0].expect      = STR("hello");
    bed.plan.amount             = 10;
    run();
    CHECK_INT(bed.totals.mismatched, 0);
    bed_open(answer, 100);
    bed.requests[0].checks_body = true;
    bed.requests[0].expect      = STR("hello!");
    bed.plan.amount             = 10;
    run();
    CHECK_INT(bed.totals.mismatched, 10);
}

TEST(a_stream_without_an_answer_times_out_and_holds_up_no_other)
{
    bed_open(answer_all_but_the_first, 100);
    bed.plan.amount     = 50;
    bed.plan.pipelining = 5;
    bed.plan.timeout_ms = 100;
    run();
    CHECK_INT(bed.totals.statuses[200], 49);
    CHECK_INT(bed.totals.faults[LOAD_TIMEOUT], 1);
    CHECK_INT(bed.totals.connections, 1);
}

TEST(streams_that_are_refused_or_reset_are_faults_and_the_connection_goes_on)
{
    bed_open(refuse_each_other, 100);
    bed.plan.amount     = 40;
    bed.plan.pipelining = 4;
    run();
    CHECK_INT(bed.totals.faults[LOAD_STREAM_REFUSED], 20);
    CHECK_INT(bed.totals.statuses[200], 20);
    CHECK_INT(bed.totals.connections, 1);
    bed_open(reset, 100);
    bed.plan.amount = 3;
    run();
    CHECK_INT(bed.totals.faults[LOAD_STREAM_RESET], 3);
    CHECK_INT(bed.totals.connections, 1);
}

TEST(behind_goaway_comes_another_connection)
{
    bed_open(leave_after_three, 100);
    bed.plan.amount     = 12;
    bed.plan.pipelining = 1;
    run();
    check_all_answered(12);
    CHECK_INT(bed.totals.connections, 4);
}

TEST(what_goaway_leaves_out_was_refused)
{
    bed_open(leave_after_three, 100);
    bed.plan.amount     = 10;
    bed.plan.pipelining = 5;
    run();
    CHECK_INT(under_way(), 0);
    CHECK(bed.totals.faults[LOAD_STREAM_REFUSED] >= 2);
    CHECK_INT(bed.totals.faults[LOAD_STREAM_REFUSED] + bed.totals.statuses[200], 10);
}

TEST(a_connection_that_ends_under_streams_fails_them_all)
{
    bed_open(close_unanswered, 100);
    bed.plan.amount     = 6;
    bed.plan.pipelining = 3;
    run();
    CHECK_INT(bed.failed, 6);
    CHECK_INT(bed.totals.faults[LOAD_CLOSED] + bed.totals.faults[LOAD_RESET], 6);
}

TEST(a_connection_is_made_anew_after_its_share)
{
    bed_open(answer, 100);
    bed.plan.amount     = 12;
    bed.plan.pipelining = 2;
    bed.plan.reconnect  = 4;
    run();
    check_all_answered(12);
    CHECK_INT(bed.totals.connections, 3);
}

TEST(a_rate_is_kept_over_streams)
{
    bed_open(answer, 100);
    bed.plan.amount     = 50;
    bed.plan.rate       = 500;
    bed.plan.pipelining = 10;
    run();
    check_all_answered(50);
    CHECK(bed.totals.elapsed_ns >= UINT64_C(90000000));
}

TEST(ids_are_written_into_fields_and_bodies)
{
    static const char     ROOM[] = FIELDS "/srv-bench-id-00000000000000srv-bench-id-00000000000000";
    static const uint32_t PLACES[] = { sizeof(FIELDS), sizeof(FIELDS) + LOAD_ID_BYTES };

    bed_open(keep_ids, 100);
    cut_fields(ROOM);
    fields[3].value          = str_make(ROOM + sizeof(FIELDS) - 1, 1 + LOAD_ID_BYTES);
    bed.requests[0].bytes    = str_of(ROOM);
    bed.requests[0].body_at  = PLACES[1];
    bed.requests[0].ids      = PLACES;
    bed.requests[0].id_count = 2;
    bed.plan.amount          = IDS;
    run();
    check_all_answered(IDS);
    for (int i = 0; i < 2 * IDS; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(seen_ids[i], seen_ids[j]) != 0);
}

static struct scripted_server other;

static bool speak_http_1(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    return false;
}

TEST(a_server_of_another_protocol_ends_the_load_at_once)
{
    struct err err;

    scripted_start(&other, speak_http_1);
    plan(other.thread.port);
    bed.plan.duration_ms = 20000;
    run_to_failure(&err);
    CHECK_STR(err.text, "the server does not speak HTTP/2");
    CHECK(bed.totals.elapsed_ns < UINT64_C(10000000000));
    CHECK_INT(bed.totals.sent, 0);
    scripted_stop(&other);
}

int main(void)
{
    return check_run();
}
