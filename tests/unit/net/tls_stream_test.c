#include "support/tls_pair.h"

#include <errno.h>

#include "net/tls_session.h"

static struct tls_server *server;
static struct tls_client *client;

static void open_sides(void)
{
    server = plain_server();
    client = plain_client();
}

static void open_pair(int send_bytes)
{
    pair_open(send_bytes);
    open_sides();
}

static void open_wire(void)
{
    wire_open();
    open_sides();
}

static void close_all(void)
{
    pair_close();
    tls_server_close(server);
    tls_client_close(client);
    pair_end();
}

static const struct tls_target TARGET = { .name = STR_INIT("a.example") };

/* Over the wire in hand, to the end. */
static void shake_on_wire(size_t len)
{
    begin(server, client, TARGET);
    wire_run(len);
    CHECK(tls_info(&ours.stream) && tls_info(&theirs.stream));
}

/* --- handshake ------------------------------------------------------------------------------- */

TEST(a_handshake_ends_and_bytes_go_both_ways)
{
    open_pair(0);
    CHECK(!tls_info(&ours.stream));
    shake_well(server, client);
    CHECK_INT(end_send(&theirs, "hello"), 5);
    RUN_UNTIL(ours.got.len == 5);
    CHECK_MEM(ours.got.at, ours.got.len, "hello", 5);
    CHECK_INT(end_send(&ours, "you too"), 7);
    RUN_UNTIL(theirs.got.len == 7);
    CHECK_MEM(theirs.got.at, theirs.got.len, "you too", 7);
    close_all();
}

TEST(until_the_handshake_is_over_both_directions_wait)
{
    char         byte;
    struct iovec iov = { &byte, 1 };

    open_pair(0);
    begin(server, client, TARGET);
    CHECK(!ours.stream.can_read && !ours.stream.can_write);
    CHECK_INT(stream_read(&ours.stream, &byte, 1), STREAM_WAIT);
    CHECK_INT(stream_writev(&theirs.stream, &iov, 1), STREAM_WAIT);
    theirs.reads = false;
    RUN_UNTIL(tls_info(&theirs.stream));
    CHECK_INT(theirs.events, 1);
    CHECK(theirs.stream.can_read && theirs.stream.can_write);
    close_all();
}

TEST(what_was_agreed_on_is_known)
{
    const struct tls_info *info;

    open_pair(0);
    shake_well(server, client);
    info = tls_info(&ours.stream);
    CHECK(strcmp(info->version, "TLSv1.2") == 0 || strcmp(info->version, "TLSv1.3") == 0);
    if (strcmp(info->version, "TLSv1.2") == 0)
        CHECK_STR(info->cipher, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    else
        CHECK_STR(info->cipher, "TLS_CHACHA20_POLY1305_SHA256");
    CHECK_STR(info->sni, "a.example");
    CHECK_STR(info->alpn, "");
    CHECK_STR(info->peer_subject, "");
    CHECK(!info->resumed);
    CHECK_STR(tls_info(&theirs.stream)->peer_subject, "CN=a.example");
    CHECK_INT(strlen(tls_info(&theirs.stream)->peer_fingerprint), 64);
    close_all();
}

TEST(byte_by_byte_it_is_the_same)
{
    open_wire();
    shake_on_wire(1);
    CHECK_INT(end_send(&theirs, "slowly"), 6);
    wire_run(1);
    CHECK_MEM(ours.got.at, ours.got.len, "slowly", 6);
    CHECK_INT(end_send(&ours, "but surely"), 10);
    wire_run(1);
    CHECK_MEM(theirs.got.at, theirs.got.len, "but surely", 10);
    close_all();
}

/* Nothing in the loop tells of the wire's far end. */
static void await_bytes(int fd)
{
    char byte;

    for (unsigned turns = 0; turns < 1000 && recv(fd, &byte, 1, MSG_PEEK) <= 0; turns++)
        run_turn();
    CHECK(recv(fd, &byte, 1, MSG_PEEK) == 1);
}

TEST(bytes_that_were_read_before_belong_to_the_handshake)
{
    char early[4096];

    open_wire();
    ours.reads = false;
    PAIR_OK(tls_connect(&theirs.stream, client, &TARGET, &pair_err));
    await_bytes(wire_theirs);
    for (int i = 0; i < 2; i++) {
        size_t len = i ? sizeof(early) : 7;

        wire_move(wire_theirs, wire_ours, (unsigned char *)early, len);
        if (i == 0) {
            RUN_UNTIL(ours.stream.can_read);
            CHECK_INT(stream_read(&ours.stream, early, sizeof(early)), 7);
            CHECK_INT(tls_accept(&ours.stream, server, str_make(early, 7)), 0);
        }
    }
    ours.reads = true;
    wire_run(4096);
    CHECK(tls_info(&ours.stream) && tls_info(&theirs.stream));
    close_all();
}

/* A client may send its first request right behind its last message. */
TEST(text_in_one_packet_with_the_end_of_the_handshake_is_not_lost)
{
    unsigned char bytes[65536];

    open_wire();
    begin(server, client, TARGET);
    for (int i = 0; i < 50 && !tls_info(&theirs.stream); i++) {
        run_turn();
        if (!tls_info(&ours.stream))
            wire_move(wire_theirs, wire_ours, bytes, sizeof(bytes));
        run_turn();
        wire_move(wire_ours, wire_theirs, bytes, sizeof(bytes));
    }
    CHECK(tls_info(&theirs.stream));
    CHECK_INT(end_send(&theirs, "first"), 5);
    wire_run(sizeof(bytes));
    CHECK_MEM(ours.got.at, ours.got.len, "first", 5);
    close_all();
}

TEST(handshakes_cut_at_any_byte_fail_and_say_so)
{
    unsigned char bytes[4096];
    unsigned      cuts = 0;

    for (size_t cut = 0; cut < 2000; cut += 11) {
        size_t went = 0;

        open_wire();
        begin(server, client, TARGET);
        for (unsigned silent = 0; silent < 6; silent++) {
            size_t n = wire_move(wire_theirs, wire_ours, bytes,
                                 cut - went < sizeof(bytes) ? cut - went : sizeof(bytes));

            went += n;
            n += wire_move(wire_ours, wire_theirs, bytes, sizeof(bytes));
            run_turn();
            silent = n ? 0 : silent;
            if (went == cut)
                break;
        }
        if (tls_info(&ours.stream)) {
            close_all();
            break;
        }
        wire_cut(&wire_ours);
        RUN_UNTIL(is_decided(&ours));
        CHECK_INT(tls_fault_kind(&ours.stream), TLS_LEFT);
        CHECK_INT(stream_read(&ours.stream, bytes, 1), STREAM_FAIL);
        cuts++;
        close_all();
    }
    CHECK(cuts > 10);
}

/* RFC 5246, 6.2.1: in any number of records. */
TEST(a_first_message_in_several_records_is_taken)
{
    unsigned char bytes[4096], cut[2 * sizeof(bytes)];
    ssize_t       len;
    size_t        at = 5, to = 0;

    open_wire();
    begin(server, client, TARGET);
    await_bytes(wire_theirs);
    len = recv(wire_theirs, bytes, sizeof(bytes), 0);
    for (size_t piece = 1; at < (size_t)len; piece += 20) {
        size_t left = (size_t)len - at, n = piece < left ? piece : left;

        memcpy(cut + to, (unsigned char[]){ 22, 3, 1, 0, (unsigned char)n }, 5);
        memcpy(cut + to + 5, bytes + at, n);
        at += n;
        to += 5 + n;
    }
    CHECK(to < sizeof(cut));
    CHECK_INT(send(wire_ours, cut, to, 0), to);
    wire_run(sizeof(bytes));
    CHECK(tls_info(&ours.stream) && tls_info(&theirs.stream));
    close_all();
}

/* In a storm most have left when it is their turn, and cost nothing then. */
TEST(one_who_has_left_already_gets_no_answer)
{
    unsigned char bytes[4096];

    open_wire();
    begin(server, client, TARGET);
    await_bytes(wire_theirs);
    wire_move(wire_theirs, wire_ours, bytes, sizeof(bytes));
    CHECK(shutdown(wire_ours, SHUT_WR) == 0);
    RUN_UNTIL(is_decided(&ours));
    CHECK_INT(tls_fault_kind(&ours.stream), TLS_LEFT);
    CHECK(recv(wire_ours, bytes, sizeof(bytes), 0) < 0);
    close_all();
}

TEST(one_who_speaks_http_is_recognized)
{
    open_wire();
    CHECK_INT(tls_accept(&ours.stream, server, STR_NONE), 0);
    CHECK_INT(send(wire_ours, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 27);
    RUN_UNTIL(is_decided(&ours));
    CHECK_INT(tls_fault_kind(&ours.stream), TLS_BROKEN);
    CHECK_STR(tls_fault(&ours.stream), "the other side speaks plain HTTP, not TLS");
    CHECK(ours.stream.saw_err);
    close_all();
}

TEST(a_byte_changed_anywhere_in_the_handshake_breaks_it)
{
    unsigned char bytes[65536];

    for (size_t at = 0; at < 400; at += 37) {
        size_t went = 0;

        open_wire();
        begin(server, client, TARGET);
        for (unsigned silent = 0; silent < 6; silent++) {
            ssize_t n = recv(wire_theirs, bytes, sizeof(bytes), 0);

            if (n > 0 && at >= went && at < went + (size_t)n)
                bytes[at - went] ^= 0x41;
            if (n > 0 && wire_ours >= 0)
                CHECK(send(wire_ours, bytes, (size_t)n, 0) == n || errno == EPIPE);
            went += n > 0 ? (size_t)n : 0;
            if (wire_move(wire_ours, wire_theirs, bytes, sizeof(bytes)) || n > 0)
                silent = 0;
            run_turn();
        }
        CHECK(at >= went || !tls_info(&ours.stream) || !tls_info(&theirs.stream));
        close_all();
    }
}

TEST(a_stream_may_be_closed_in_the_middle_of_its_handshake)
{
    open_pair(0);
    begin(server, client, TARGET);
    end_close(&ours);
    RUN_UNTIL(is_decided(&theirs));
    CHECK_INT(tls_fault_kind(&theirs.stream), TLS_LEFT);
    close_all();
}

/* --- renegotiation ----------------------------------------------------------------------------- */

TEST(nothing_is_negotiated_anew)
{
    struct tls_session *session;

    open_pair(0);
    mbedtls_ssl_conf_renegotiation(&((struct tls_side *)(void *)client)->conf,
                                   MBEDTLS_SSL_RENEGOTIATION_ENABLED);
    shake_well(server, client);
    session = theirs.stream.tls;
    if (strcmp(tls_info(&ours.stream)->version, "TLSv1.2") == 0) {
        tls_session_enter(session);
        CHECK_INT(mbedtls_ssl_renegotiate(&session->ssl), MBEDTLS_ERR_SSL_WANT_READ);
        tls_session_leave(session);
        RUN_UNTIL(theirs.last == STREAM_FAIL || theirs.events > 1);
        run_for_ms(20);
        CHECK(!ours.stream.tls->ssl.MBEDTLS_PRIVATE(handshake));
        CHECK(ours.stream.tls->state == TLS_OPEN);
    }
    close_all();
}

/* --- records ------------------------------------------------------------------------------------- */

enum { BULK_BYTES = 1 << 20 };

static char *make_bulk(unsigned seed)
{
    char *bulk = malloc(BULK_BYTES);

    for (size_t i = 0; i < BULK_BYTES; i++)
        bulk[i] = (char)(i * 7 + i / 251 + seed);
    return bulk;
}

/* Sends by pieces of uneven lengths, as much as the stream takes. */
static size_t send_bulk(struct tls_end *end, const char *bulk, size_t at)
{
    while (end->stream.can_write && at < BULK_BYTES) {
        size_t       left = BULK_BYTES - at;
        struct iovec iov[4];
        size_t       from  = at;
        int          count = 0;
        ssize_t      n;

        for (size_t len = 1 + at % 700; count < 4 && left; len = len * 9 % 40000 + 1) {
            iov[count] = (struct iovec){ (char *)bulk + from, len < left ? len : left };
            left -= iov[count].iov_len;
            from += iov[count++].iov_len;
        }
        n = stream_writev(&end->stream, iov, count);
        CHECK(n > 0 || n == STREAM_WAIT);
        at += n > 0 ? (size_t)n : 0;
    }
    return at;
}

static void check_bulk(const struct tls_end *end, const char *bulk)
{
    CHECK_INT(end->got.len, BULK_BYTES);
    CHECK(memcmp(end->got.at, bulk, BULK_BYTES) == 0);
}

TEST(a_megabyte_goes_both_ways_at_once_through_tiny_sockets)
{
    char  *bulks[2] = { make_bulk(1), make_bulk(2) };
    size_t sent[2]  = { 0, 0 };

    open_pair(4608);
    shake_well(server, client);
    while (sent[0] < BULK_BYTES || sent[1] < BULK_BYTES || ours.got.len < BULK_BYTES ||
           theirs.got.len < BULK_BYTES) {
        sent[0] = send_bulk(&ours, bulks[0], sent[0]);
        sent[1] = send_bulk(&theirs, bulks[1], sent[1]);
        run_turn();
        CHECK(ours.last != STREAM_FAIL && theirs.last != STREAM_FAIL);
    }
    check_bulk(&ours, bulks[1]);
    check_bulk(&theirs, bulks[0]);
    free(bulks[0]);
    free(bulks[1]);
    close_all();
}

/* Whoever has been told that all was taken may close. */
TEST(what_was_taken_is_with_the_kernel)
{
    char  *bulk = make_bulk(3);
    size_t sent = 0;

    open_pair(4608);
    shake_well(server, client);
    while (sent < BULK_BYTES) {
        sent = send_bulk(&ours, bulk, sent);
        if (sent == BULK_BYTES)
            break;
        run_turn();
    }
    stream_shut(&ours.stream);
    end_close(&ours);
    RUN_UNTIL(theirs.last == STREAM_FIN || theirs.last == STREAM_FAIL);
    check_bulk(&theirs, bulk);
    free(bulk);
    close_all();
}

TEST(less_may_be_offered_than_before)
{
    char  *bulk = make_bulk(4);
    size_t sent = 0;

    open_pair(4608);
    theirs.reads = false;
    shake_well(server, client);
    sent         = send_bulk(&ours, bulk, sent);
    theirs.reads = true;
    while (sent < BULK_BYTES) {
        struct iovec iov = { bulk + sent, BULK_BYTES - sent < 100 ? BULK_BYTES - sent : 100 };
        ssize_t      n   = stream_writev(&ours.stream, &iov, 1);

        CHECK(n > 0 || n == STREAM_WAIT);
        CHECK(n <= (ssize_t)iov.iov_len);
        sent += n > 0 ? (size_t)n : 0;
        if (n == STREAM_WAIT) {
            end_read(&theirs);
            run_turn();
        }
    }
    RUN_UNTIL(theirs.got.len == BULK_BYTES);
    check_bulk(&theirs, bulk);
    free(bulk);
    close_all();
}

static unsigned count_records(const unsigned char *bytes, size_t len)
{
    unsigned count = 0;

    for (size_t at = 0; at + 5 <= len; count++)
        at += 5 + ((size_t)bytes[at + 3] << 8 | bytes[at + 4]);
    return count;
}

TEST(small_pieces_become_one_record_and_large_ones_several)
{
    unsigned char *bytes    = malloc(BULK_BYTES);
    char          *bulk     = make_bulk(5);
    struct iovec   small[3] = { { "a", 1 }, { "", 0 }, { "bc", 2 } };
    struct iovec   large[2] = { { bulk, 1000 }, { bulk + 1000, 39960 } };
    ssize_t        n;

    open_wire();
    shake_on_wire(4096);
    CHECK_INT(stream_writev(&ours.stream, small, 3), 3);
    n = recv(wire_ours, bytes, BULK_BYTES, 0);
    CHECK_INT(count_records(bytes, (size_t)n), 1);
    CHECK_INT(stream_writev(&ours.stream, large, 2), 40960);
    n = recv(wire_ours, bytes, BULK_BYTES, 0);
    CHECK_INT(count_records(bytes, (size_t)n), 3); /* 16,384 and again and the rest */
    free(bulk);
    free(bytes);
    close_all();
}

TEST(a_reader_with_little_room_is_told_that_there_is_more)
{
    char to[8];

    open_pair(0);
    shake_well(server, client);
    ours.reads = false;
    CHECK_INT(end_send(&theirs, "0123456789"), 10);
    RUN_UNTIL(ours.stream.can_read && ours.events > 1);
    CHECK_INT(stream_read(&ours.stream, to, 4), 4);
    CHECK(ours.stream.can_read);
    CHECK_INT(stream_read(&ours.stream, to, 4), 4);
    CHECK(ours.stream.can_read);
    CHECK_INT(stream_read(&ours.stream, to, 4), 2);
    CHECK_MEM(to, 2, "89", 2);
    CHECK(!ours.stream.can_read);
    CHECK_INT(stream_read(&ours.stream, to, 4), STREAM_WAIT);
    close_all();
}

TEST(many_records_fill_one_read)
{
    char to[64];

    open_pair(0);
    shake_well(server, client);
    ours.reads = false;
    for (int i = 0; i < 20; i++)
        CHECK_INT(end_send(&theirs, "x"), 1);
    RUN_UNTIL(ours.stream.can_read && ours.events > 1);
    run_for_ms(5);
    CHECK_INT(stream_read(&ours.stream, to, sizeof(to)), 20);
    close_all();
}

/* Much work for little text: others have their turn in between. */
TEST(a_read_of_many_tiny_records_ends_before_all_is_read_and_says_so)
{
    enum { ROOM = 16 * 1024 };
    struct tls_session *session;
    char               *to   = malloc(ROOM);
    size_t              sent = 0, got = 0;
    ssize_t             n;

    open_pair(8 << 20); /* as large as the system allows: many times a receive */
    shake_well(server, client);
    ours.reads = false;
    session    = theirs.stream.tls;
    while (tls_session_is_sent(session)) {
        tls_session_enter(session);
        for (int i = 0; i < 1000; i++, sent++)
            CHECK_INT(mbedtls_ssl_write(&session->ssl, (unsigned char *)"x", 1), 1);
        tls_session_leave(session);
    }
    RUN_UNTIL(ours.stream.can_read);
    n = stream_read(&ours.stream, to, ROOM);
    CHECK(n > 0 && n < ROOM && (size_t)n < sent && ours.stream.can_read);
    for (got = n > 0 ? (size_t)n : ROOM; got < sent; got += (size_t)n) {
        RUN_UNTIL(ours.stream.can_read);
        n = stream_read(&ours.stream, to, ROOM);
        if (n == STREAM_WAIT)
            n = 0;
        CHECK(n >= 0);
        if (n < 0)
            break;
    }
    CHECK_INT(got, sent);
    free(to);
    close_all();
}

TEST(a_changed_record_fails_the_stream_after_what_came_before_it)
{
    unsigned char bytes[4096];
    char          to[64];
    ssize_t       n;

    open_wire();
    shake_on_wire(4096);
    ours.reads = false;
    CHECK_INT(end_send(&theirs, "good"), 4);
    CHECK_INT(end_send(&theirs, "bad"), 3);
    n = recv(wire_theirs, bytes, sizeof(bytes), 0);
    CHECK(n > 40);
    bytes[n - 1] ^= 1;
    CHECK_INT(send(wire_ours, bytes, (size_t)n, 0), n);
    RUN_UNTIL(ours.stream.can_read);
    CHECK_INT(stream_read(&ours.stream, to, sizeof(to)), 4);
    CHECK(ours.stream.can_read && !ours.stream.saw_err);
    CHECK_INT(stream_read(&ours.stream, to, sizeof(to)), STREAM_FAIL);
    CHECK(ours.stream.saw_err);
    CHECK_STR(tls_fault(&ours.stream), "a record was changed on its way");
    CHECK_INT(end_send(&ours, "x"), STREAM_FAIL);
    wire_run(4096);
    CHECK_INT(theirs.last, STREAM_FAIL);
    CHECK_INT(tls_fault_kind(&theirs.stream), TLS_REFUSED);
    close_all();
}

/* As one who is not let in meets it in TLS 1.3: the server has said why and has gone. */
TEST(an_alert_is_heard_also_by_one_who_can_send_no_more)
{
    unsigned char bytes[4096];
    ssize_t       n;

    open_wire();
    shake_on_wire(4096);
    theirs.reads = false;
    CHECK_INT(end_send(&theirs, "bad"), 3);
    n = recv(wire_theirs, bytes, sizeof(bytes), 0);
    CHECK(n > 20);
    bytes[n - 1] ^= 1;
    CHECK_INT(send(wire_ours, bytes, (size_t)n, 0), n);
    RUN_UNTIL(ours.last == STREAM_FAIL);
    CHECK(wire_move(wire_ours, wire_theirs, bytes, sizeof(bytes)) > 0);
    wire_cut(&wire_theirs);
    CHECK_INT(end_send(&theirs, "more"), STREAM_FAIL);
    CHECK_INT(theirs.stream.error, EPIPE);
    end_read(&theirs);
    CHECK_INT(theirs.last, STREAM_FAIL);
    CHECK_INT(tls_fault_kind(&theirs.stream), TLS_REFUSED);
    close_all();
}

TEST(files_must_be_copied)
{
    off_t offset = 0;

    open_pair(0);
    shake_well(server, client);
    CHECK_INT(stream_sendfile(&ours.stream, 0, &offset, 1), STREAM_UNSUPPORTED);
    close_all();
}

/* --- the end ---------------------------------------------------------------------------------------- */

TEST(an_end_that_was_said_is_told_apart_from_one_that_was_not)
{
    for (int said = 0; said < 2; said++) {
        open_pair(0);
        shake_well(server, client);
        CHECK_INT(end_send(&theirs, "last"), 4);
        if (said)
            stream_shut(&theirs.stream);
        end_close(&theirs);
        RUN_UNTIL(ours.last == STREAM_FIN);
        CHECK_MEM(ours.got.at, ours.got.len, "last", 4);
        CHECK(ours.stream.cut == !said);
        CHECK(ours.stream.saw_fin && ours.stream.can_read);
        CHECK_STR(tls_fault(&ours.stream), "");
        close_all();
    }
}

TEST(after_its_end_a_peer_still_listens)
{
    open_pair(0);
    shake_well(server, client);
    stream_shut(&theirs.stream);
    stream_shut(&theirs.stream);
    CHECK(theirs.stream.shut);
    RUN_UNTIL(ours.last == STREAM_FIN);
    CHECK(!ours.stream.cut);
    CHECK_INT(end_send(&ours, "still here"), 10);
    RUN_UNTIL(theirs.got.len == 10);
    stream_shut(&ours.stream);
    RUN_UNTIL(theirs.last == STREAM_FIN);
    CHECK(!theirs.stream.cut);
    close_all();
}

TEST(an_end_waits_behind_what_the_socket_does_not_take_yet)
{
    char  *bulk = make_bulk(6);
    size_t sent;

    open_pair(4608);
    theirs.reads = false;
    shake_well(server, client);
    sent = send_bulk(&ours, bulk, 0);
    CHECK(sent < BULK_BYTES);
    stream_shut(&ours.stream); /* what is not taken is given up, but for records that have begun */
    CHECK(!ours.stream.shut);
    theirs.reads = true;
    for (int i = 0; i < 1000 && theirs.last != STREAM_FIN; i++) {
        end_read(&theirs);
        run_turn();
    }
    CHECK_INT(theirs.last, STREAM_FIN);
    CHECK(!theirs.stream.cut);
    CHECK(ours.stream.shut);
    CHECK(theirs.got.len >= sent && memcmp(theirs.got.at, bulk, theirs.got.len) == 0);
    free(bulk);
    close_all();
}

/* --- idle ------------------------------------------------------------------------------------------------ */

static void let_pass(uint64_t ms)
{
    loop_move_clock(loop, loop_clock_ns(loop) + ms * 1000000);
    run_turn();
    run_turn();
}

static bool is_zero(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i])
            return false;
    return true;
}

TEST(pages_of_an_idle_connection_go_back_and_it_goes_on)
{
    char                *bulk = make_bulk(7);
    const unsigned char *out;

    open_pair(0);
    shake_well(server, client);
    loop_hold_clock(loop);
    for (int i = 0; i < 3; i++) {
        struct iovec iov = { bulk, 9000 };

        theirs.got.len = ours.got.len = 0;
        CHECK_INT(stream_writev(&theirs.stream, &iov, 1), 9000);
        while (ours.got.len < 9000)
            run_turn();
        CHECK(memcmp(ours.got.at, bulk, 9000) == 0);
        out = theirs.stream.tls->ssl.MBEDTLS_PRIVATE(out_buf);
        CHECK(!is_zero(out + 4200, 4000));
        let_pass(TLS_DROP_MS + 500);
        CHECK(is_zero(out + 4200, 4000));
        CHECK_INT(stream_writev(&ours.stream, &iov, 1), 9000);
        while (theirs.got.len < 9000)
            run_turn();
        CHECK(memcmp(theirs.got.at, bulk, 9000) == 0);
    }
    loop_release_clock(loop);
    free(bulk);
    close_all();
}

TEST(half_a_record_is_kept_however_long_it_takes)
{
    char         *bulk = make_bulk(8);
    struct iovec  iov  = { bulk, 12000 };
    unsigned char bytes[16384];

    open_wire();
    shake_on_wire(4096);
    CHECK_INT(stream_writev(&theirs.stream, &iov, 1), 12000);
    CHECK_INT(wire_move(wire_theirs, wire_ours, bytes, 9000), 9000);
    run_for_ms(5);
    loop_hold_clock(loop);
    let_pass(10000);
    loop_release_clock(loop);
    wire_run(4096);
    CHECK_INT(ours.got.len, 12000);
    CHECK(memcmp(ours.got.at, bulk, 12000) == 0);
    free(bulk);
    close_all();
}

int main(void)
{
    int rc = check_run();

    forget_certs();
    return rc;
}
