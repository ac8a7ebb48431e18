/* A whole connection: a client that says anything, in pieces, and a server that answers by the
 * path's first letter. One that begins as a PROXY header does comes from a proxy. What comes back must be a sequence of well-formed answers, and when the
 * client has gone nothing of it may be left.
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
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve.h"
#include "net/addr.h"
#include "net/networks.h"
#include "support/settle.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { PIECES = 4, STREAM_PARTS = 3, ANSWERS_MAX = 4096 };

static struct loop        *loop;
static struct http_server *server;
static struct arena_pool   arenas;
static struct networks     proxies; /* peers of Unix sockets */

/* Of the running input: which answers have no body, in order. */
static bool     is_head[ANSWERS_MAX];
static unsigned asked;

/* --- the app -------------------------------------------------------------------------------------------- */

static void finish(struct exchange *ex, unsigned status, struct str body)
{
    struct answer answer = { status, NULL, 0, STR("text/plain") };

    exchange_answer(ex, &answer, body);
    exchange_work_let_go(ex);
}

static void take(struct exchange *ex)
{
    exchange_take_body(ex, 100);
}

static void end_body(struct exchange *ex)
{
    finish(ex, ex->request_state == REQUEST_BROKEN ? ex->request_fault : 200, STR("read"));
}

static void let_go(struct exchange *ex, enum gone_why why)
{
    exchange_work_let_go(ex);
}

static const struct exchange_work reader = { .on_body     = take,
                                             .on_body_end = end_body,
                                             .on_gone     = let_go };

static void read_all(struct exchange *ex)
{
    ex->work = &reader;
    exchange_want(ex);
    if (ex->request_state != REQUEST_BODY)
        end_body(ex);
}

static void stream(struct exchange *ex)
{
    struct answer answer = { 200, NULL, 0, STR("text/plain") };
    struct iovec  piece  = { "part\n", 5 };

    exchange_head(ex, &answer, ANSWER_LENGTH_UNKNOWN);
    for (unsigned i = 0; i < STREAM_PARTS; i++)
        exchange_body(ex, &piece, 1);
    exchange_end(ex, NULL, 0);
    exchange_work_let_go(ex);
}

static void on_request(struct exchange *ex, void *arg)
{
    struct str path = ex->request.path;

    assert(asked < ANSWERS_MAX);
    is_head[asked++] = str_is(ex->request.method, STR("HEAD"));
    switch (path.len > 1 ? path.at[1] : '/') {
    case 'e': read_all(ex); break;
    case 's': stream(ex); break;
    case 'f': exchange_work_let_go(ex); break;
    case 'n': finish(ex, 204, STR("")); break;
    default: finish(ex, 200, STR("ok")); break;
    }
}

/* --- what came back --------------------------------------------------------------------------------------- */

/* Cuts one line off *REST, which must end in CRLF. */
static struct str next_line(struct str *rest)
{
    size_t     end  = str_find(*rest, '\n');
    struct str line = str_make(rest->at, end);

    assert(end < rest->len && end > 0 && line.at[end - 1] == '\r');
    *rest = str_from(*rest, end + 1);
    line.len--;
    return line;
}

static void skip(struct str *rest, uint64_t bytes)
{
    assert(bytes <= rest->len);
    *rest = str_from(*rest, (size_t)bytes);
}

static void skip_chunks(struct str *rest)
{
    for (;;) {
        struct str    line = next_line(rest);
        unsigned long size = strtoul(line.at, NULL, 16);

        if (size)
            skip(rest, size);
        assert(next_line(rest).len == 0);
        if (!size)
            return;
    }
}

/* One answer; NO_BODY: to HEAD. False: it was interim. */
static bool skip_answer(struct str *rest, bool no_body)
{
    struct str line = next_line(rest), field;
    unsigned   status;
    uint64_t   length  = 0;
    bool       chunked = false, has_length = false;

    assert(str_starts_with(line, STR("HTTP/1.1 ")) && line.len > 13);
    status = (unsigned)strtoul(line.at + 9, NULL, 10);
    while ((field = next_line(rest)).len) {
        if (str_starts_with(field, STR("Content-Length: ")))
            has_length = str_to_u64(str_from(field, 16), UINT64_MAX, &length);
        chunked |= str_is(field, STR("Transfer-Encoding: chunked"));
    }
    assert(!chunked || !has_length);
    if (status < 200)
        return false;
    if (no_body || status == 204 || status == 304)
        return true;
    if (chunked)
        skip_chunks(rest);
    else
        skip(rest, has_length ? length : rest->len); /* else to the connection's end: HTTP/1.0 */
    return true;
}

/* Everything that was dispatched is answered in order, and at most one refusal comes behind. */
static void check_answers(struct str rest)
{
    unsigned answered = 0;

    while (rest.len) {
        bool refused = answered == asked;
        bool no_body = refused ? str_find(rest, '{') == rest.len : is_head[answered];

        if (!skip_answer(&rest, no_body))
            continue;
        answered++;
        assert(!refused || !rest.len);
    }
    assert(answered >= asked);
}

/* --- a connection ------------------------------------------------------------------------------------------- */

static void open_server(void)
{
    struct http_limits         limits;
    struct http_server_options options;

    http_limits_init(&limits);
    limits.body_bytes = 100000;
    limits.pipeline   = 3;
    limits.streams    = 0; /* HTTP/1 alone: h2_fuzz.c has the rest */
    arena_pool_init(&arenas, 16);
    if (loop_open(&loop, NULL) < 0)
        abort();
    networks_parse(&proxies, STR("loopback"), &(struct str){ 0 });
    options = (struct http_server_options){ .loop     = loop,
                                            .arenas   = &arenas,
                                            .limits   = &limits,
                                            .proxies  = &proxies,
                                            .dispatch = on_request };
    server  = http_server_open(&options);
}

static void receive(int fd, struct buf *received)
{
    char    bytes[4096];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        buf_add(received, bytes, (size_t)n);
}

static bool is_proxied(struct str all)
{
    return str_starts_with(all, STR("PROXY")) || str_starts_with(all, STR("\r\n\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct addr peer = { .family =
                             is_proxied(str_make((const char *)bytes, len)) ? AF_UNIX : AF_INET };
    struct buf  received;
    int         ends[2];

    if (!server)
        open_server();
    if (len > 64 * 1024 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        return 0;
    asked = 0;
    buf_init(&received, 16 * 1024 * 1024);
    http_server_accept(server, ends[1], &peer);
    for (unsigned i = 0; i < PIECES; i++) {
        size_t from = len * i / PIECES, to = len * (i + 1) / PIECES;

        if (to > from)
            (void)!send(ends[0], bytes + from, to - from, MSG_NOSIGNAL);
        settle(loop);
        receive(ends[0], &received);
    }
    shutdown(ends[0], SHUT_WR);
    settle(loop);
    receive(ends[0], &received);
    check_answers(buf_str(&received));
    close(ends[0]);
    settle(loop);
    assert(http_server_connections(server) == 0);
    buf_fini(&received);
    return 0;
}
