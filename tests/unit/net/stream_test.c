#include "net/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "ev/timer.h"
#include "support/check.h"

/* One connection over loopback: the stream under test, and the bare descriptor of its peer. */
static struct loop  *loop;
static struct stream stream;
static int           peer;
static unsigned      events;

static void on_event(struct stream *s, void *arg)
{
    events++;
    CHECK(s == &stream);
    CHECK(arg == &peer);
    loop_break(loop);
}

/* TCP, since a socketpair knows no reset. */
static void connect_pair(int *ours, int *theirs)
{
    struct sockaddr_in at   = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t          len  = sizeof(at);
    int                door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(bind(door, (struct sockaddr *)&at, len) == 0 && listen(door, 1) == 0);
    CHECK(getsockname(door, (struct sockaddr *)&at, &len) == 0);
    *theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(*theirs, (struct sockaddr *)&at, len) == 0);
    *ours = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(*ours >= 0);
    close(door);
}

static void open_stream(void)
{
    struct err err;
    int        fd;

    signal(SIGPIPE, SIG_IGN);
    CHECK(loop_open(&loop, &err) == 0);
    connect_pair(&fd, &peer);
    events = 0;
    CHECK(stream_init(&stream, loop, fd, on_event, &peer) == 0);
}

static void close_peer(void)
{
    if (peer >= 0)
        close(peer);
    peer = -1;
}

static void close_stream(void)
{
    stream_fini(&stream);
    close_peer();
    loop_close(loop);
    loop = NULL;
}

static void reset_by_peer(void)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };

    CHECK(setsockopt(peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
    close_peer();
}

static void on_time_up(struct timer *timer)
{
    loop_break(loop);
}

/* For claims that nothing happens. */
static void run_for_ms(unsigned ms)
{
    struct timer timer;

    timer_init(&timer, on_time_up);
    timer_start(&timer, loop, ms);
    loop_run(loop);
    timer_stop(&timer, loop);
}

static void peer_sends(const char *text)
{
    CHECK_INT(send(peer, text, strlen(text), 0), strlen(text));
}

static ssize_t send_text(const char *text)
{
    struct iovec iov = { (char *)text, strlen(text) };

    return stream_writev(&stream, &iov, 1);
}

TEST(a_new_stream_can_write_and_nothing_tells_it_so_again)
{
    open_stream();
    CHECK(stream.can_write && !stream.can_read && !stream.saw_fin && !stream.saw_err);
    run_for_ms(5);
    CHECK_INT(events, 0);
    close_stream();
}

TEST(bytes_bring_one_event_and_a_short_read_ends_reading)
{
    char to[16];

    open_stream();
    peer_sends("hello");
    loop_run(loop);
    CHECK(stream.can_read);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), 5);
    CHECK_MEM(to, 5, "hello", 5);
    CHECK(!stream.can_read);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), STREAM_WAIT);
    CHECK_INT(events, 1);
    close_stream();
}

TEST(a_full_read_leaves_can_read_until_the_socket_says_not_yet)
{
    char to[4];

    open_stream();
    peer_sends("abcd");
    loop_run(loop);
    CHECK_INT(stream_read(&stream, to, 4), 4);
    CHECK(stream.can_read);
    CHECK_INT(stream_read(&stream, to, 4), STREAM_WAIT);
    CHECK(!stream.can_read);
    peer_sends("ef");
    loop_run(loop);
    CHECK_INT(stream_read(&stream, to, 4), 2);
    close_stream();
}

TEST(more_bytes_for_a_stream_that_can_read_are_no_news)
{
    open_stream();
    peer_sends("a");
    loop_run(loop);
    peer_sends("b");
    run_for_ms(5);
    CHECK_INT(events, 1);
    close_stream();
}

TEST(a_fin_is_seen_before_the_bytes_are_read_and_the_end_after_them)
{
    char to[16];

    open_stream();
    peer_sends("bye");
    shutdown(peer, SHUT_WR);
    while (!stream.saw_fin)
        loop_run(loop);
    CHECK(stream.can_read);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), 3);
    CHECK(stream.can_read); /* no edge will come for the end */
    CHECK_INT(stream_read(&stream, to, sizeof(to)), STREAM_FIN);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), STREAM_FIN);
    CHECK(!stream.saw_err);
    CHECK_INT(send_text("still here?"), 11); /* a half-closed peer listens */
    CHECK_INT(recv(peer, to, sizeof(to), 0), 11);
    close_stream();
}

TEST(a_reset_is_told_to_a_reader)
{
    char to[16];

    open_stream();
    reset_by_peer();
    loop_run(loop);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), STREAM_FAIL);
    CHECK(stream.saw_err);
    CHECK_INT(stream.error, ECONNRESET);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), STREAM_FAIL);
    CHECK_INT(send_text("x"), STREAM_FAIL);
    close_stream();
}

TEST(a_reset_is_told_to_one_who_has_paused)
{
    open_stream();
    stream.paused = true;
    reset_by_peer();
    loop_run(loop);
    CHECK(stream.saw_err);
    CHECK_INT(stream.error, ECONNRESET);
    close_stream();
}

TEST(a_reset_behind_unread_bytes_is_told)
{
    open_stream();
    peer_sends("unread");
    loop_run(loop);
    CHECK(stream.can_read && !stream.saw_err);
    reset_by_peer();
    loop_run(loop);
    CHECK(stream.saw_err);
    close_stream();
}

/* A server may answer early and break off what it does not want to read. */
TEST(what_came_before_a_reset_can_be_read_and_then_no_end)
{
    char bytes[16];

    open_stream();
    peer_sends("answer");
    reset_by_peer();
    CHECK_INT(send_text("more"), STREAM_FAIL);
    CHECK_INT(stream.error, ECONNRESET);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), 6);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), STREAM_FAIL);
    close_stream();
}

TEST(a_reset_in_one_event_with_bytes_is_told_to_one_who_reads_again)
{
    char bytes[16];

    open_stream();
    peer_sends("part");
    reset_by_peer();
    run_for_ms(20);
    CHECK_INT(events, 1);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), 4);
    CHECK(!stream.can_read);
    stream_read_again(&stream);
    CHECK(stream.can_read);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), STREAM_FAIL);
    CHECK(stream_is_broken(&stream));
    close_stream();
}

TEST(who_reads_again_where_nothing_has_happened_waits)
{
    char bytes[16];

    open_stream();
    peer_sends("part");
    run_for_ms(20);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), 4);
    CHECK(!stream_is_broken(&stream));
    stream_read_again(&stream);
    CHECK_INT(stream_read(&stream, bytes, sizeof(bytes)), STREAM_WAIT);
    stream_read_again(&stream);
    CHECK(!stream.can_read);
    close_stream();
}

TEST(bytes_for_one_who_has_paused_are_no_reset)
{
    open_stream();
    stream.paused = true;
    peer_sends("patience");
    loop_run(loop);
    CHECK(stream.can_read && !stream.saw_err);
    CHECK_INT(stream.error, 0);
    close_stream();
}

/* CORE, decision 3: a FIN alone is undecidable; what was sent after it finds out. */
TEST(a_peer_that_closed_answers_what_is_sent_with_a_reset)
{
    open_stream();
    close_peer();
    loop_run(loop);
    CHECK(stream.saw_fin && !stream.saw_err);
    CHECK_INT(send_text("x"), 1);
    loop_run(loop);
    CHECK(stream.saw_err);
    CHECK_INT(send_text("y"), STREAM_FAIL);
    close_stream();
}

/* --- writing -------------------------------------------------------------------------------- */

enum { BULK_BYTES = 8 << 20 };

/* Writes until the socket is full, by two pieces at a time. Returns what it took. */
static size_t fill(const char *bulk)
{
    size_t sent = 0;

    while (stream.can_write && sent < BULK_BYTES) {
        size_t       half   = (BULK_BYTES - sent) / 2;
        struct iovec iov[2] = { { (char *)bulk + sent, half },
                                { (char *)bulk + sent + half, BULK_BYTES - sent - half } };
        ssize_t      n      = stream_writev(&stream, iov, 2);

        CHECK(n > 0 || n == STREAM_WAIT);
        sent += n > 0 ? (size_t)n : 0;
    }
    return sent;
}

static void peer_reads(const char *want, size_t len)
{
    static char to[65536];

    for (size_t at = 0; at < len;) {
        ssize_t n = recv(peer, to, sizeof(to) < len - at ? sizeof(to) : len - at, 0);

        CHECK(n > 0);
        CHECK(memcmp(to, want + at, (size_t)n) == 0);
        at += (size_t)n;
    }
}

static char *make_bulk(void)
{
    char *bulk = malloc(BULK_BYTES);

    for (size_t i = 0; i < BULK_BYTES; i++)
        bulk[i] = (char)(i * 7 + i / 251);
    return bulk;
}

TEST(a_full_socket_takes_a_part_and_tells_when_it_takes_more)
{
    char  *bulk = make_bulk();
    size_t sent;

    open_stream();
    sent = fill(bulk);
    CHECK(sent > 0 && sent < BULK_BYTES);
    CHECK(!stream.can_write);
    peer_reads(bulk, sent);
    loop_run(loop);
    CHECK(stream.can_write);
    CHECK(send_text("more") == 4);
    close_stream();
    free(bulk);
}

TEST(pieces_arrive_as_one)
{
    struct iovec iov[3] = { { "one ", 4 }, { "", 0 }, { "two", 3 } };

    open_stream();
    CHECK_INT(stream_writev(&stream, iov, 3), 7);
    CHECK(stream.can_write);
    peer_reads("one two", 7);
    close_stream();
}

TEST(after_shut_the_peer_reads_the_end_and_we_still_read)
{
    char to[8];

    open_stream();
    CHECK_INT(send_text("last"), 4);
    stream_shut(&stream);
    stream_shut(&stream);
    CHECK(stream.shut);
    peer_reads("last", 4);
    CHECK_INT(recv(peer, to, sizeof(to), 0), 0);
    peer_sends("late");
    while (!stream.can_read)
        loop_run(loop);
    CHECK_INT(stream_read(&stream, to, sizeof(to)), 4);
    close_stream();
}

/* --- files ---------------------------------------------------------------------------------- */

static int open_file(const char *bytes, size_t len)
{
    char name[] = "/tmp/stream_test.XXXXXX";
    int  fd     = mkstemp(name);

    CHECK(fd >= 0);
    unlink(name);
    CHECK_INT(write(fd, bytes, len), len);
    return fd;
}

TEST(a_part_of_a_file_goes_out_and_its_end_is_zero)
{
    int   file;
    off_t offset = 2;

    open_stream();
    file = open_file("0123456789", 10);
    CHECK_INT(stream_sendfile(&stream, file, &offset, 5), 5);
    CHECK_INT(offset, 7);
    CHECK_INT(stream_sendfile(&stream, file, &offset, 100), 3);
    CHECK(stream.can_write); /* it was the file that ended */
    CHECK_INT(stream_sendfile(&stream, file, &offset, 100), 0);
    peer_reads("23456789", 8);
    close(file);
    close_stream();
}

TEST(a_file_larger_than_the_socket_waits_for_it)
{
    char   *bulk = make_bulk();
    int     file;
    off_t   offset = 0;
    ssize_t n;

    open_stream();
    file = open_file(bulk, BULK_BYTES);
    do
        n = stream_sendfile(&stream, file, &offset, BULK_BYTES - (size_t)offset);
    while (n > 0);
    CHECK_INT(n, STREAM_WAIT);
    CHECK(!stream.can_write);
    peer_reads(bulk, (size_t)offset);
    loop_run(loop);
    CHECK(stream.can_write);
    close(file);
    close_stream();
    free(bulk);
}

TEST(what_the_kernel_cannot_send_must_be_copied)
{
    off_t offset = 0;
    int   dir    = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    open_stream();
    CHECK_INT(stream_sendfile(&stream, dir, &offset, 1), STREAM_UNSUPPORTED);
    CHECK_INT(stream.error, 0);
    close(dir);
    close_stream();
}

TEST(a_file_sent_to_one_who_has_gone_fails_the_stream)
{
    int   file;
    off_t offset = 0;

    open_stream();
    file = open_file("0123456789", 10);
    reset_by_peer();
    CHECK_INT(stream_sendfile(&stream, file, &offset, 10), STREAM_FAIL);
    CHECK(stream.saw_err);
    close(file);
    close_stream();
}

/* --- letting go ------------------------------------------------------------------------------ */

TEST(a_detached_descriptor_is_open_and_tells_the_stream_nothing_more)
{
    int  fd;
    char to[8];

    open_stream();
    fd = stream_detach(&stream);
    peer_sends("to you");
    run_for_ms(5);
    CHECK_INT(events, 0);
    CHECK_INT(recv(fd, to, sizeof(to), 0), 6);
    close(fd);
    close_peer();
    loop_close(loop);
}

TEST(a_descriptor_that_cannot_be_watched_is_closed_again)
{
    struct err err;
    int        fd = open_file("x", 1);

    CHECK(loop_open(&loop, &err) == 0);
    CHECK_INT(stream_init(&stream, loop, fd, on_event, NULL), ERR_SYSTEM);
    CHECK_INT(fcntl(fd, F_GETFD), -1);
    loop_close(loop);
}

static void on_event_fini(struct stream *s, void *arg)
{
    struct stream **freed = arg;

    stream_fini(s);
    free(s);
    *freed = NULL;
    loop_break(loop);
}

TEST(a_stream_may_be_freed_by_its_own_event)
{
    struct stream *own = malloc(sizeof(*own));
    struct err     err;
    int            fd;

    CHECK(loop_open(&loop, &err) == 0);
    connect_pair(&fd, &peer);
    CHECK(stream_init(own, loop, fd, on_event_fini, &own) == 0);
    peer_sends("x");
    loop_run(loop);
    CHECK(own == NULL);
    close_peer();
    loop_close(loop);
}

int main(void)
{
    return check_run();
}
