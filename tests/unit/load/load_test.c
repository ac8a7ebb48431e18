#include "load/load.h"

#include <stdio.h>

#include "support/load_bed.h"
#include "support/scripted_server.h"

/* --- a load against a script ------------------------------------------------------------------------ */

#define GET  "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEAD "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct scripted_server server;

static void bed_open(scripted_fn script)
{
    scripted_start(&server, script);
    bed_plan(server.thread.port);
    bed.requests[0] = bed.requests[1] = (struct load_request){ .bytes = STR(GET) };
}

static void run(void)
{
    run_alone();
    scripted_stop(&server);
}

/* --- scripts ------------------------------------------------------------------------------------------ */

static bool answer(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, OK);
    return true;
}

static bool close_each_fifth(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, OK);
    return peer->requests % 5 != 0;
}

static bool close_unanswered(struct scripted_peer *peer, const char *head)
{
    return false;
}

static bool announce_the_end(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
    return false;
}

static bool end_the_body_by_closing(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\n\r\nno length");
    return false;
}

static bool answer_in_chunks(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel");
    scripted_send(peer, "\r\n2\r\nlo\r\n0\r\n\r\n");
    return true;
}

static bool answer_without_the_body(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    return true;
}

static bool hint_first(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" OK);
    return true;
}

static bool talk_nonsense(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "220 mail.example ESMTP\r\n");
    return true;
}

static bool say_nothing(struct scripted_peer *peer, const char *head)
{
    return true;
}

static bool reset_it(struct scripted_peer *peer, const char *head)
{
    scripted_reset(peer);
    return false;
}

/* Both may arrive as one event. */
static bool reset_amid_the_body(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\npart");
    return reset_it(peer, head);
}

static bool never_pause(struct scripted_peer *peer, const char *head)
{
    static char hints[64 * 1024];
    const char  hint[] = "HTTP/1.1 103 Early Hints\r\n\r\n";

    if (!hints[0])
        for (size_t at = 0; at + sizeof(hint) < sizeof(hints); at += sizeof(hint) - 1)
            memcpy(hints + at, hint, sizeof(hint) - 1);
    while (send(peer->fd, hints, strlen(hints), MSG_NOSIGNAL) > 0)
        ;
    return false;
}

static bool answer_twice(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, OK OK);
    return true;
}

static bool not_found(struct scripted_peer *peer, const char *head)
{
    scripted_send(peer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    return true;
}

/* --- what becomes of requests --------------------------------------------------------------------------- */

static void check_all_answered(unsigned status, uint64_t amount)
{
    CHECK_INT(bed.totals.sent, amount);
    CHECK_INT(bed.totals.statuses[status], amount);
    CHECK_INT(bed.failed, 0);
}

TEST(an_amount_is_sent_exactly_however_it_is_divided)
{
    bed_open(answer);
    bed.plan.amount      = 101;
    bed.plan.threads     = 2;
    bed.plan.connections = 5;
    run();
    check_all_answered(200, 101);
    CHECK_INT(bed.totals.connections, 5);
    CHECK_INT(hist_count(&bed.latency), 101);
    CHECK_INT(hist_count(&bed.service), 101);
    CHECK_INT(bed.totals.bytes_in, 101 * strlen(OK));
    CHECK_INT(bed.totals.bytes_out, 101 * strlen(GET));
}

TEST(a_thread_without_a_share_of_the_amount_holds_nobody)
{
    bed_open(answer);
    bed.plan.amount      = 1;
    bed.plan.threads     = 4;
    bed.plan.connections = 8;
    run();
    check_all_answered(200, 1);
}

TEST(pipelined_requests_get_their_answers)
{
    bed_open(answer);
    bed.plan.amount      = 500;
    bed.plan.pipelining  = 70;
    bed.plan.connections = 2;
    run();
    check_all_answered(200, 500);
}

TEST(a_connection_that_ends_under_requests_fails_them_as_closed)
{
    bed_open(close_each_fifth);
    bed.plan.amount     = 60;
    bed.plan.pipelining = 3;
    run();
    CHECK_INT(bed.totals.sent, 60);
    CHECK_INT(under_way(), 0);
    CHECK(bed.answered >= 5 && bed.failed > 0);
    CHECK_INT(bed.totals.faults[LOAD_CLOSED] + bed.totals.faults[LOAD_RESET], bed.failed);
}

TEST(a_server_that_closes_without_an_answer_is_not_attacked)
{
    bed_open(close_unanswered);
    bed.plan.amount = 4;
    run();
    CHECK_INT(bed.totals.faults[LOAD_CLOSED], 4);
    CHECK(bed.totals.elapsed_ns >= (10 + 20 + 40) * UINT64_C(1000000));
}

TEST(an_end_that_was_announced_is_no_fault)
{
    bed_open(announce_the_end);
    bed.plan.amount = 20;
    run();
    check_all_answered(200, 20);
    CHECK_INT(bed.totals.connections, 20);
}

TEST(the_end_of_a_connection_can_be_that_of_a_response)
{
    bed_open(end_the_body_by_closing);
    bed.plan.amount = 5;
    run();
    check_all_answered(200, 5);
}

TEST(chunks_are_read_and_their_body_is_compared)
{
    bed_open(answer_in_chunks);
    bed.requests[0].checks_body = true;
    bed.requests[0].expect      = STR("hello");
    bed.plan.amount             = 10;
    run();
    check_all_answered(200, 10);
    CHECK_INT(bed.totals.mismatched, 0);
}

TEST(bodies_that_are_longer_or_shorter_or_other_are_mismatches)
{
    static const struct str OTHERS[] = { STR("hell"), STR("hello!"), STR("hullo"), STR("") };

    for (size_t i = 0; i < 4; i++) {
        bed_open(answer);
        bed.requests[0].checks_body = true;
        bed.requests[0].expect      = OTHERS[i];
        bed.plan.amount             = 3;
        run();
        check_all_answered(200, 3);
        CHECK_INT(bed.totals.mismatched, 3);
    }
}

TEST(an_answer_to_HEAD_ends_with_its_head)
{
    bed_open(answer_without_the_body);
    bed.requests[0].bytes   = STR(HEAD);
    bed.requests[0].is_head = true;
    bed.plan.amount         = 10;
    run();
    check_all_answered(200, 10);
}

TEST(interim_responses_are_no_answers)
{
    bed_open(hint_first);
    bed.plan.amount = 10;
    run();
    check_all_answered(200, 10);
}

TEST(what_is_no_http_is_malformed)
{
    bed_open(talk_nonsense);
    bed.plan.amount = 2;
    run();
    CHECK_INT(bed.totals.faults[LOAD_MALFORMED], 2);
}

TEST(silence_is_a_timeout_and_those_behind_it_are_closed)
{
    bed_open(say_nothing);
    bed.plan.amount     = 3;
    bed.plan.pipelining = 3;
    bed.plan.timeout_ms = 50;
    run();
    CHECK_INT(bed.totals.faults[LOAD_TIMEOUT], 1);
    CHECK_INT(bed.totals.faults[LOAD_CLOSED], 2);
}

TEST(a_reset_is_told_from_an_end)
{
    bed_open(reset_it);
    bed.plan.amount = 2;
    run();
    CHECK_INT(bed.totals.faults[LOAD_RESET], 2);
}

TEST(a_reset_that_comes_with_bytes_is_no_timeout)
{
    bed_open(reset_amid_the_body);
    bed.plan.amount      = 40;
    bed.plan.connections = 40;
    run();
    CHECK_INT(bed.totals.faults[LOAD_TIMEOUT], 0);
    CHECK_INT(bed.totals.faults[LOAD_RESET], 40);
}

TEST(bytes_that_nobody_asked_for_end_their_connection_and_are_counted)
{
    bed_open(answer_twice);
    bed.plan.duration_ms = 300;
    bed.plan.amount      = 5;
    run();
    CHECK_INT(under_way(), 0);
    CHECK(bed.totals.statuses[200] >= 1);
    CHECK(bed.totals.unasked + bed.totals.faults[LOAD_MALFORMED] >= 1 || bed.answered == 5);
    CHECK(bed.totals.unasked >= 1);
}

TEST(a_load_on_nobody_ends_with_its_bailout_and_no_later)
{
    bed_open(answer);
    bed.plan.bailout     = 3;
    bed.plan.connections = 1;
    bed.plan.duration_ms = 20000;
    scripted_stop(&server);
    run_alone();
    CHECK_INT(bed.totals.faults[LOAD_REFUSED], 3);
    CHECK_INT(bed.totals.sent, 3);
    CHECK(bed.totals.elapsed_ns < UINT64_C(10000000000));
}

TEST(times_of_other_statuses_can_be_left_out)
{
    bed_open(not_found);
    bed.plan.amount  = 7;
    bed.plan.only_ok = true;
    run();
    check_all_answered(404, 7);
    CHECK_INT(hist_count(&bed.latency), 0);
}

/* --- how connections are used ------------------------------------------------------------------------- */

TEST(a_connection_retires_after_its_share_and_the_load_ends_with_the_last)
{
    bed_open(answer);
    bed.plan.per_connection = 3;
    bed.plan.connections    = 4;
    bed.plan.threads        = 2;
    run();
    check_all_answered(200, 12);
    CHECK_INT(bed.totals.connections, 4);
}

TEST(a_connection_is_made_anew_after_so_many_requests)
{
    bed_open(answer);
    bed.plan.reconnect = 2;
    bed.plan.amount    = 10;
    run();
    check_all_answered(200, 10);
    CHECK_INT(bed.totals.connections, 5);
}

static atomic_uint asked_a, asked_b;

static bool count_paths(struct scripted_peer *peer, const char *head)
{
    atomic_fetch_add(strncmp(head, "GET /a", 6) == 0 ? &asked_a : &asked_b, 1);
    return answer(peer, head);
}

TEST(requests_come_round_as_the_wheel_says)
{
    bed_open(count_paths);
    atomic_store(&asked_a, 0);
    atomic_store(&asked_b, 0);
    bed.requests[1].bytes = STR("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    bed.wheel[2]          = 1;
    bed.plan.wheel_len    = 3;
    bed.plan.amount       = 30;
    run();
    CHECK_INT(atomic_load(&asked_a), 20);
    CHECK_INT(atomic_load(&asked_b), 10);
}

enum { IDS = 50 };
static char     ids[IDS][2 * LOAD_ID_BYTES + 1];
static unsigned id_count; /* the server's thread, read when it has ended */

static bool keep_ids(struct scripted_peer *peer, const char *head)
{
    snprintf(ids[id_count++], sizeof(ids[0]), "%.*s%.*s", LOAD_ID_BYTES, head + 5, LOAD_ID_BYTES,
             head + 5 + LOAD_ID_BYTES + 1);
    return answer(peer, head);
}

TEST(each_id_is_written_once)
{
    static const uint32_t PLACES[] = { 5, 5 + LOAD_ID_BYTES + 1 };

    bed_open(keep_ids);
    id_count              = 0;
    bed.requests[0].bytes = STR(
        "GET /000000000000000000000000000/000000000000000000000000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    bed.requests[0].ids      = PLACES;
    bed.requests[0].id_count = 2;
    bed.plan.amount          = IDS;
    bed.plan.pipelining      = 7;
    run();
    CHECK_INT(id_count, IDS);
    for (int i = 0; i < IDS; i++)
        for (int other = 0; other < i; other++)
            CHECK(strcmp(ids[i], ids[other]) != 0);
    CHECK(strncmp(ids[0], ids[0] + LOAD_ID_BYTES, LOAD_ID_BYTES) != 0);
}

/* --- the open loop ---------------------------------------------------------------------------------------- */

TEST(at_a_rate_each_planned_moment_is_a_request_or_still_due)
{
    bed_open(answer);
    bed.plan.rate        = 1000;
    bed.plan.duration_ms = 300;
    bed.plan.connections = 4;
    bed.plan.threads     = 2;
    run();
    CHECK(bed.totals.sent <= bed.totals.elapsed_ns / 1000000 + 2);
    CHECK(bed.totals.sent + bed.totals.backlog >= 299);
    CHECK_INT(bed.failed, 0);
}

static bool answer_slowly(struct scripted_peer *peer, const char *head)
{
    nanosleep(&(struct timespec){ 0, 50 * 1000000 }, NULL);
    return answer(peer, head);
}

TEST(who_waits_for_a_slow_server_waits_since_the_planned_moment)
{
    bed_open(answer_slowly);
    bed.plan.rate        = 100; /* one each 50 ms is all it can */
    bed.plan.duration_ms = 1000;
    run();
    CHECK(bed.totals.late > 0 && bed.totals.backlog > 0);
    CHECK(hist_percentile(&bed.service, 50) < hist_percentile(&bed.latency, 50));
    CHECK(hist_percentile(&bed.service, 0) >= 49000);
}

/* --- its end ------------------------------------------------------------------------------------------------ */

TEST(a_load_without_a_bound_ends_when_it_is_stopped)
{
    struct load *load;
    struct err   err;
    sem_t        over;

    bed_open(answer);
    sem_init(&over, 0, 0);
    CHECK_INT(load_start(&load, &bed.plan, on_over, &over, &err), 0);
    load_stop(load);
    await(load, &over);
    load_free(load);
    scripted_stop(&server);
}

TEST(a_server_that_never_pauses_does_not_put_off_the_end)
{
    bed_open(never_pause);
    bed.plan.duration_ms = 200;
    bed.plan.timeout_ms  = 60000;
    run();
    CHECK(bed.totals.elapsed_ns < UINT64_C(30000000000));
}

TEST(requests_beyond_the_bound_are_refused)
{
    struct load *load;
    struct err   err;

    bed_open(answer);
    bed.requests[1].bytes.len = (size_t)LOAD_OUT_BYTES_MAX / 10 + 1;
    bed.plan.pipelining       = 10;
    CHECK_INT(load_start(&load, &bed.plan, on_over, NULL, &err), ERR_TOO_LARGE);
    scripted_stop(&server);
}

int main(void)
{
    return check_run();
}
