/* A server on one end of a socket pair, a client of HTTP/2 on the other: what a turn costs. SOCK_SEQPACKET keeps the
 * bounds of writes, so that a test can count them. What the frames mean is tests/h2's. */
#include "http/h2.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "ev/loop.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve.h"
#include "net/addr.h"
#include "support/check.h"
#include "support/count_malloc.h"
#include "support/settle.h"

enum {
    FRAME_HEAD    = 9,
    DATA          = 0,
    HEADERS       = 1,
    RST_STREAM    = 3,
    SETTINGS      = 4,
    WINDOW_UPDATE = 8,
    END_STREAM    = 1,
    END_HEADERS   = 4,
    LARGE         = 1024 * 1024,
};

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static int                 client;
static unsigned char       received[256 * 1024];
static size_t              received_len;

static unsigned         dispatched, sent_count, gone_count;
static struct exchange *held[8]; /* of "/hold": open, ours */
static unsigned         held_count;

/* --- the app -------------------------------------------------------------------------------------------- */

static void on_sent(struct exchange *ex)
{
    sent_count++;
}

/* It goes on, as a task whose defers take their time. */
static void on_gone(struct exchange *ex, enum gone_why why)
{
    gone_count++;
}

static const struct exchange_work work = { .on_sent = on_sent, .on_gone = on_gone };

static void on_request(struct exchange *ex, void *arg)
{
    static const struct answer OK = { 200, NULL, 0, STR_INIT("text/plain") };

    dispatched++;
    if (str_is(ex->request.path, STR("/hold"))) {
        ex->work           = &work;
        held[held_count++] = ex;
        return;
    }
    exchange_answer(ex, &OK, ex->request.path);
    exchange_work_let_go(ex);
}

static void let_go_of_held(void)
{
    while (held_count)
        exchange_work_let_go(held[--held_count]);
}

/* --- the world -------------------------------------------------------------------------------------------- */

/* One write of the server; its length, 0 at the end, -1 for none. */
static ssize_t hear(void)
{
    ssize_t n = recv(client, received, sizeof(received), MSG_DONTWAIT);

    received_len = n > 0 ? (size_t)n : 0;
    return n;
}

static unsigned frames_of(unsigned type)
{
    unsigned count = 0;

    for (size_t at = 0; at + FRAME_HEAD <= received_len;) {
        count += received[at + 3] == type;
        at += FRAME_HEAD +
              ((size_t)received[at] << 16 | (size_t)received[at + 1] << 8 | received[at + 2]);
    }
    return count;
}

static void open_server(unsigned streams, int type)
{
    static const char          hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    struct addr                peer    = { .family = AF_UNIX };
    struct http_limits         limits;
    struct http_server_options options;
    int                        ends[2];

    dispatched = sent_count = gone_count = 0;
    http_limits_init(&limits);
    limits.streams = streams;
    arena_pool_init(&arenas, 64);
    if (loop_open(&loop, NULL) < 0 || socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends) < 0)
        abort();
    options = (struct http_server_options){
        .loop = loop, .arenas = &arenas, .limits = &limits, .dispatch = on_request
    };
    server = http_server_open(&options);
    client = ends[0];
    http_server_accept(server, ends[1], &peer);
    CHECK(send(client, hello, sizeof(hello) - 1, 0) > 0);
    settle(loop);
    CHECK(hear() > 0);
}

static void close_server(void)
{
    close(client);
    settle(loop);
    CHECK_INT(http_server_connections(server), 0);
    let_go_of_held();
    http_server_close(server);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

/* --- frames ------------------------------------------------------------------------------------------------- */

struct said {
    unsigned char bytes[4096];
    size_t        len;
};

static void add_frame(struct said *said, unsigned type, unsigned flags, unsigned id,
                      const void *payload, unsigned len)
{
    unsigned char *at = said->bytes + said->len;

    memcpy(at,
           (unsigned char[]){ 0, (unsigned char)(len >> 8), (unsigned char)len, (unsigned char)type,
                              (unsigned char)flags, 0, 0, (unsigned char)(id >> 8),
                              (unsigned char)id },
           FRAME_HEAD);
    memcpy(at + FRAME_HEAD, payload, len);
    said->len += FRAME_HEAD + len;
}

/* :method GET, :scheme http, :authority a, and the path; nothing enters a table. */
static void add_get(struct said *said, unsigned id, const char *path)
{
    char     block[64] = "\x82\x86\x01\x01"
                         "a\x04";
    unsigned len       = 6;

    block[len++] = (char)strlen(path);
    memcpy(block + len, path, strlen(path));
    add_frame(said, HEADERS, END_STREAM | END_HEADERS, id, block, len + (unsigned)strlen(path));
}

static void say(struct said *said)
{
    CHECK(send(client, said->bytes, said->len, MSG_NOSIGNAL) == (ssize_t)said->len);
    said->len = 0;
    settle(loop);
}

/* --- what a turn costs ---------------------------------------------------------------------------------------- */

TEST(the_answers_of_a_turn_are_one_write)
{
    struct said said = { 0 };

    open_server(128, SOCK_SEQPACKET);
    for (unsigned id = 1; id <= 19; id += 2)
        add_get(&said, id, "/a");
    say(&said);
    CHECK(hear() > 0);
    CHECK_INT(frames_of(HEADERS), 10);
    CHECK_INT(frames_of(DATA), 10);
    CHECK_INT(hear(), -1);
    CHECK_INT(http_server_requests(server), 10);
    close_server();
}

TEST(a_request_that_is_reset_in_the_same_packet_starts_no_work)
{
    struct said said = { 0 };

    open_server(128, SOCK_STREAM);
    add_get(&said, 1, "/a");
    add_frame(&said, RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    add_get(&said, 3, "/a");
    say(&said);
    CHECK_INT(dispatched, 1);
    close_server();
}

TEST(cancelled_work_counts_until_it_lets_go)
{
    struct said said = { 0 };

    open_server(2, SOCK_STREAM);
    add_get(&said, 1, "/hold");
    add_get(&said, 3, "/hold");
    say(&said);
    CHECK_INT(dispatched, 2);
    add_frame(&said, RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    add_frame(&said, RST_STREAM, 0, 3, "\0\0\0\x08", 4);
    add_get(&said, 5, "/a");
    say(&said);
    CHECK_INT(gone_count, 2);
    CHECK_INT(dispatched, 2); /* the third waits */
    exchange_work_let_go(held[--held_count]);
    settle(loop);
    CHECK_INT(dispatched, 3);
    CHECK(hear() > 0);
    CHECK_INT(frames_of(HEADERS), 1);
    close_server();
}

TEST(work_that_outlives_its_connection_is_let_go_of_later)
{
    struct said said = { 0 };

    open_server(8, SOCK_STREAM);
    add_get(&said, 1, "/hold");
    say(&said);
    close(client);
    client = -1; /* it may have half-closed: the wire waits for a moment */
    while (http_server_connections(server)) {
        usleep(10 * 1000);
        settle(loop);
    }
    CHECK_INT(gone_count, 1);
    CHECK_INT(held_count, 1);
    close_server();
}

TEST(what_came_of_a_body_can_be_taken_after_its_client_has_gone)
{
    static const char post[] = "\x83\x86\x01\x01"
                               "a\x04\x05/hold";
    struct said       said   = { 0 };
    struct str        taken;

    open_server(8, SOCK_STREAM);
    add_frame(&said, HEADERS, END_HEADERS, 1, post, sizeof(post) - 1);
    add_frame(&said, DATA, 0, 1, "hello", 5);
    say(&said);
    taken = exchange_take_body(held[0], 2);
    CHECK_MEM(taken.at, taken.len, "he", 2);
    add_frame(&said, RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    say(&said);
    CHECK_INT(gone_count, 1);
    taken = exchange_take_body(held[0], 100);
    CHECK_MEM(taken.at, taken.len, "llo", 3);
    close_server();
}

/* --- windows ------------------------------------------------------------------------------------------------------- */

static void add_window(struct said *said, unsigned id)
{
    add_frame(said, WINDOW_UPDATE, 0, id, "\0\x20\0", 4); /* 2 MiB */
}

/* WINDOW bytes of a large answer fill the socket and more, perhaps to the last; then comes what opens it. */
static size_t hear_through(unsigned window)
{
    static const char          letters[LARGE];
    static const struct answer OK         = { 200, NULL, 0, STR_INIT("text/plain") };
    unsigned char              settings[] = {
                     0, 4, 0, (unsigned char)(window >> 16), (unsigned char)(window >> 8), (unsigned char)window
    };
    struct said said  = { 0 };
    size_t      heard = 0;

    open_server(128, SOCK_STREAM);
    add_frame(&said, SETTINGS, 0, 0, settings, sizeof(settings));
    add_window(&said, 0);
    add_get(&said, 1, "/hold");
    say(&said);
    exchange_answer(held[0], &OK, str_make(letters, sizeof(letters)));
    let_go_of_held();
    settle(loop);
    add_window(&said, 1);
    say(&said);
    while (hear() > 0) {
        heard += received_len;
        settle(loop);
    }
    close_server();
    return heard;
}

TEST(a_window_that_opens_while_the_client_does_not_read_is_noticed_when_it_does)
{
    for (unsigned window = 64 * 1024; window < LARGE; window += 8 * 1024)
        CHECK(hear_through(window) > LARGE);
}

/* --- memory -------------------------------------------------------------------------------------------------------- */

#ifdef COUNTS_MALLOC

static void ask(unsigned *id)
{
    struct said said = { 0 };

    for (unsigned i = 0; i < 8; i++, *id += 2)
        add_get(&said, *id, "/a");
    say(&said);
    CHECK(hear() > 0);
    CHECK_INT(frames_of(DATA), 8);
}

/* Within one second: with the next one another Date enters the table of HPACK. */
TEST(a_warm_connection_allocates_nothing)
{
    unsigned      id = 1;
    unsigned long before;
    int64_t       second;

    open_server(128, SOCK_STREAM);
    do {
        second = clock_wall_ms() / 1000;
        for (unsigned i = 0; i < 5; i++)
            ask(&id);
        before = malloc_count;
        for (unsigned i = 0; i < 100; i++)
            ask(&id);
    } while (clock_wall_ms() / 1000 != second && id < 100000);
    CHECK_INT(malloc_count - before, 0);
    close_server();
}

#endif

int main(void)
{
    return check_run();
}
