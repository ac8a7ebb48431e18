/* A connection of HTTP/2: the preface, then whatever frames the input holds, in pieces, to a server that answers
 * by the path's first letter. What comes back must be well-formed frames within what the client allowed, no more
 * work may be under way than streams may be open, and when the client has gone nothing of it may be left.
 *
 * links: srv_http */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "ev/loop.h"
#include "http/channel.h"
#include "http/exchange.h"
#include "http/h2.h"
#include "http/message.h"
#include "http/serve.h"
#include "net/addr.h"
#include "support/settle.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    PIECES      = 4,
    STREAMS     = 8,
    INPUT_MAX   = 64 * 1024,
    OUTPUT_MAX  = 64 * 1024 * 1024,
    STREAM_SIZE = 300 * 1024, /* of a streamed answer: more than any window that is not opened */
    FRAME_HEAD  = 9,
    FRAME_MAX   = 16384,
    GOAWAY      = 7,
    TYPES       = 10,
    PATIENCE    = 1000,
};

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static unsigned            working; /* exchanges and channels that are not let go */

/* Work that does not end by itself: it waits, or goes on though it was cancelled. */
static struct exchange *waiting[64], *held[64];
static unsigned         waiting_count, held_count;

/* --- the app -------------------------------------------------------------------------------------------- */

static void let_go(struct exchange *ex)
{
    working--;
    exchange_work_let_go(ex);
}

static void finish(struct exchange *ex, unsigned status, struct str body)
{
    struct field  field  = { STR("X-Field"), STR("value"), FIELD_OTHER };
    struct answer answer = { status, &field, 1, STR("text/plain") };

    exchange_answer(ex, &answer, body);
    let_go(ex);
}

static void on_gone(struct exchange *ex, enum gone_why why)
{
    let_go(ex);
}

static void forget_waiting(struct exchange *ex)
{
    unsigned i = 0;

    while (waiting[i] != ex)
        i++;
    waiting[i] = waiting[--waiting_count];
}

static void on_waiting_gone(struct exchange *ex, enum gone_why why)
{
    forget_waiting(ex);
    let_go(ex);
}

/* The client has gone, and the work takes its time: it counts as long. */
static void on_stubborn_gone(struct exchange *ex, enum gone_why why)
{
    forget_waiting(ex);
    held[held_count++] = ex;
}

static void wait_for_ever(struct exchange *ex, bool is_stubborn)
{
    static const struct exchange_work patient  = { .on_gone = on_waiting_gone };
    static const struct exchange_work stubborn = { .on_gone = on_stubborn_gone };

    ex->work                 = is_stubborn ? &stubborn : &patient;
    waiting[waiting_count++] = ex;
}

static void end_held(void)
{
    while (held_count)
        let_go(held[--held_count]);
}

static void end_waiting(void)
{
    while (waiting_count)
        let_go(waiting[--waiting_count]);
}

static void take(struct exchange *ex)
{
    exchange_take_body(ex, 1000);
}

static void end_body(struct exchange *ex)
{
    finish(ex, ex->request_state == REQUEST_BROKEN ? ex->request_fault : 200, STR("read"));
}

static const struct exchange_work reader = { .on_body     = take,
                                             .on_body_end = end_body,
                                             .on_gone     = on_gone };

static void read_all(struct exchange *ex)
{
    ex->work = &reader;
    exchange_want(ex);
    if (ex->request_state != REQUEST_BODY)
        end_body(ex);
}

static void write_more(struct exchange *ex)
{
    static char  letters[64 * 1024];
    struct field trailer = { STR("X-Sum"), STR("1"), FIELD_OTHER };
    struct iovec piece   = { letters, sizeof(letters) };

    while (ex->sent_bytes < STREAM_SIZE)
        if (exchange_body(ex, &piece, 1) < 0)
            return;
    exchange_end(ex, &trailer, 1);
    let_go(ex);
}

static const struct exchange_work writer = { .on_room = write_more, .on_gone = on_gone };

static void stream(struct exchange *ex)
{
    struct answer hints = { 103, NULL, 0, STR("") }, head = { 200, NULL, 0, STR("text/plain") };

    ex->work = &writer;
    exchange_interim(ex, &hints);
    exchange_head(ex, &head, ANSWER_LENGTH_UNKNOWN);
    write_more(ex);
}

static void send_file(struct exchange *ex)
{
    struct answer head = { 200, NULL, 0, STR("text/plain") };

    exchange_head(ex, &head, 1000);
    exchange_file(ex, open("/dev/zero", O_RDONLY | O_CLOEXEC), 0, 1000);
    let_go(ex);
}

static void cut(struct exchange *ex)
{
    struct answer head  = { 200, NULL, 0, STR("text/plain") };
    struct iovec  piece = { "part", 4 };

    exchange_head(ex, &head, 100);
    exchange_body(ex, &piece, 1);
    let_go(ex);
}

/* --- a tunnel --------------------------------------------------------------------------------------------- */

/* "x" cuts it. */
static void echo_bytes(struct channel *channel)
{
    enum channel_reading reading;
    struct str           rest;

    do {
        struct iovec piece;
        ssize_t      n;

        reading = channel_fill(channel);
        rest    = channel_rest(channel);
        piece   = (struct iovec){ (void *)rest.at, rest.len };
        n       = rest.len ? channel_write(channel, &piece, 1) : 0;
        if (n == CHANNEL_WAIT)
            return;
        channel_consume(channel, (size_t)n);
    } while (reading == CHANNEL_BYTES);
    if (rest.len && rest.at[0] == 'x') {
        working--;
        channel_abort(channel);
    } else if (reading == CHANNEL_END && !channel_rest(channel).len) {
        working--;
        channel_end(channel);
    }
}

static void on_tunnel_gone(struct channel *channel, enum gone_why why)
{
    working--;
}

static const struct channel_user echo = { .on_bytes = echo_bytes,
                                          .on_room  = channel_wake,
                                          .on_gone  = on_tunnel_gone };

static void open_tunnel(struct exchange *ex)
{
    struct answer   answer  = { .status = 200 };
    struct channel *channel = exchange_upgrade(ex, STR("echo"), &answer);

    if (!channel) {
        finish(ex, 200, STR("no tunnel"));
        return;
    }
    working++;
    channel_take(channel, &echo, NULL);
    let_go(ex);
}

/* --- dispatch ----------------------------------------------------------------------------------------------- */

static void check_request(const struct request *request)
{
    assert(request->version_major == 2 && request->path.len && request->host.at);
    for (unsigned i = 0; i < request->field_count; i++)
        assert(request->fields[i].name.len && request->fields[i].name.at[0] != ':');
}

static void on_request(struct exchange *ex, void *arg)
{
    struct str path = ex->request.path;

    check_request(&ex->request);
    working++;
    assert(working <= 2 * STREAMS); /* a tunnel may count twice while it is opened */
    switch (path.len > 1 ? path.at[1] : '/') {
    case 'e': read_all(ex); break;
    case 's': stream(ex); break;
    case 'f': send_file(ex); break;
    case 'c': cut(ex); break;
    case 'o': let_go(ex); break;
    case 'n': finish(ex, 204, STR("")); break;
    case 't': open_tunnel(ex); break;
    case 'w': wait_for_ever(ex, false); break;
    case 'b': wait_for_ever(ex, true); break;
    default: finish(ex, 200, STR("ok")); break;
    }
}

/* --- what came back --------------------------------------------------------------------------------------- */

static uint32_t number(const char *at, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

/* Whole frames of types that a server sends, no larger than allowed; none behind an error's GOAWAY. */
static void check_frames(struct str rest)
{
    bool over = false;

    while (rest.len >= FRAME_HEAD) {
        uint32_t len  = number(rest.at, 3);
        unsigned type = (unsigned char)rest.at[3];

        assert(len <= FRAME_MAX && type < TYPES && type != 5 && !over);
        if (rest.len < FRAME_HEAD + len)
            break; /* the client did not read on */
        over = type == GOAWAY && number(rest.at + FRAME_HEAD + 4, 4) != 0;
        rest = str_from(rest, FRAME_HEAD + len);
    }
}

/* --- a connection ------------------------------------------------------------------------------------------- */

static void open_server(void)
{
    struct http_limits         limits;
    struct http_server_options options;

    http_limits_init(&limits);
    limits.body_bytes    = 100000;
    limits.pipeline      = 3;
    limits.streams       = STREAMS;
    limits.half_close_ms = 1;
    arena_pool_init(&arenas, 16);
    if (loop_open(&loop, NULL) < 0)
        abort();
    options = (struct http_server_options){
        .loop = loop, .arenas = &arenas, .limits = &limits, .dispatch = on_request
    };
    server = http_server_open(&options);
}

static void say(int fd, const void *bytes, size_t len)
{
    if (len)
        (void)!send(fd, bytes, len, MSG_NOSIGNAL);
}

static void receive(int fd, struct buf *received)
{
    char    bytes[65536];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        buf_add(received, bytes, (size_t)n);
        settle(loop);
    }
}

/* Who is in the middle of something may have half-closed alone, for a millisecond. */
static void wait_for_end(void)
{
    settle(loop);
    for (unsigned i = 0; i < PATIENCE && http_server_connections(server); i++) {
        usleep(500);
        settle(loop);
    }
}

/* The first byte says how: whether the client reads, and whether the work of cancelled streams goes on. */
static void talk(int fd, const uint8_t *bytes, size_t len, struct buf *received)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    unsigned          how     = bytes[0];

    say(fd, hello, sizeof(hello) - 1);
    for (unsigned i = 0; i < PIECES; i++) {
        size_t from = 1 + (len - 1) * i / PIECES, to = 1 + (len - 1) * (i + 1) / PIECES;

        say(fd, bytes + from, to - from);
        settle(loop);
        if (how & 1)
            end_held();
        if (how & 2)
            receive(fd, received);
    }
    if (how & 4)
        shutdown(fd, SHUT_WR);
    settle(loop);
    receive(fd, received);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct addr peer = { .family = AF_INET };
    struct buf  received;
    int         ends[2];

    if (!server)
        open_server();
    if (!len || len > INPUT_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        return 0;
    buf_init(&received, OUTPUT_MAX);
    http_server_accept(server, ends[1], &peer);
    talk(ends[0], bytes, len, &received);
    check_frames(buf_str(&received));
    close(ends[0]);
    end_waiting();
    wait_for_end();
    assert(http_server_connections(server) == 0);
    end_held();
    assert(working == 0);
    buf_fini(&received);
    return 0;
}
