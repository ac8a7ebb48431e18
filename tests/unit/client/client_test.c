/* Connections and calls against a server on the same loop, which says what its script says. */
#include "client/client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "client/client_call.h"
#include "net/dns.h"
#include "support/check.h"

enum { PEERS_MAX = 8, CALLS_MAX = 8 };

/* --- the server ---------------------------------------------------------------------------------------- */

struct script {
    const char *text;      /* to each request whose head has come; NULL: silence */
    size_t      piece;     /* bytes sent at once; 0: all */
    bool        closes;    /* behind it */
    bool        at_accept; /* says it, or closes, without waiting for a request */
};

struct peer {
    struct io    io;
    int          fd;
    char         got[8192];
    size_t       got_len;
    size_t       answered; /* bytes of `got` that were requests already answered */
    size_t       to_send;  /* where in the script; SIZE_MAX: nothing to say */
    struct later later;
    bool         saw_end;
};

static struct loop        *loop;
static struct dns         *dns;
static struct http_client *client;
static struct arena_pool   arenas;
static struct io           door;
static int                 door_fd;
static uint16_t            port;
static struct script       script;
static struct peer         peers[PEERS_MAX];
static unsigned            peer_count;

static void peer_close(struct peer *peer)
{
    if (peer->fd < 0)
        return;
    io_stop(&peer->io);
    later_cancel(&peer->later);
    close(peer->fd);
    peer->fd = -1;
}

static void say(struct later *later)
{
    struct peer *peer = container_of(later, struct peer, later);
    size_t       left = strlen(script.text) - peer->to_send;
    size_t       now  = script.piece && script.piece < left ? script.piece : left;

    CHECK(send(peer->fd, script.text + peer->to_send, now, MSG_NOSIGNAL) >= 0 || errno);
    peer->to_send += now;
    if (peer->to_send < strlen(script.text)) {
        loop_later(loop, &peer->later);
        return;
    }
    peer->to_send = SIZE_MAX;
    if (script.closes)
        peer_close(peer);
}

static void answer(struct peer *peer)
{
    if (!script.text && script.closes) {
        peer_close(peer);
        return;
    }
    if (!script.text)
        return;
    peer->to_send = 0;
    loop_later(loop, &peer->later);
}

static void on_peer(int fd, short what, void *arg)
{
    struct peer *peer = arg;
    ssize_t      n = recv(fd, peer->got + peer->got_len, sizeof(peer->got) - peer->got_len - 1, 0);
    char        *end;

    if (n <= 0) {
        if (n < 0 && errno == EAGAIN)
            return;
        peer->saw_end = true;
        peer_close(peer);
        return;
    }
    peer->got_len += (size_t)n;
    peer->got[peer->got_len] = '\0';
    end                      = strstr(peer->got + peer->answered, "\r\n\r\n");
    if (!end || script.at_accept)
        return;
    peer->answered = (size_t)(end - peer->got) + 4;
    answer(peer);
}

static void on_door(int fd, short what, void *arg)
{
    struct peer *peer = &peers[peer_count++];

    CHECK(peer_count <= PEERS_MAX);
    memset(peer, 0, sizeof(*peer));
    peer->to_send = SIZE_MAX;
    later_init(&peer->later, say);
    peer->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(io_start_level(&peer->io, loop, peer->fd, on_peer, peer) == 0);
    if (script.at_accept)
        answer(peer);
}

static void open_server(void)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t          len = sizeof(at);

    door_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(bind(door_fd, (struct sockaddr *)&at, len) == 0 && listen(door_fd, 16) == 0);
    CHECK(getsockname(door_fd, (struct sockaddr *)&at, &len) == 0);
    port = ntohs(at.sin_port);
    CHECK(io_start_level(&door, loop, door_fd, on_door, NULL) == 0);
}

static void set_up(const char *text, const struct client_options *options)
{
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    script     = (struct script){ .text = text };
    peer_count = 0;
    peers[0]   = (struct peer){ .fd = -1 };
    h1_parse_init();
    arena_pool_init(&arenas, 4);
    CHECK(loop_open(&loop, &err) == 0);
    CHECK(dns_open(&dns, loop, NULL, &err) == 0);
    CHECK(http_client_open(&client, loop, dns, NULL, options, &err) == 0);
    open_server();
}

static void tear_down(void)
{
    io_stop(&door);
    close(door_fd);
    for (unsigned i = 0; i < peer_count; i++)
        peer_close(&peers[i]);
    http_client_close(client);
    dns_close(dns);
    loop_close(loop);
    arena_pool_fini(&arenas);
}

/* --- calls ----------------------------------------------------------------------------------------------- */

struct asked {
    struct client_call call;
    char               body[4096];
    size_t             len;
    bool               over, reads_nothing;
    struct str         to_write; /* of a streamed body */
};

static struct asked calls[CALLS_MAX];
static unsigned     awaited; /* calls that are not over */

static void on_event(struct client_call *call)
{
    struct asked *asked = container_of(call, struct asked, call);
    ssize_t       n     = CALL_WAIT;

    while (call->connected && !call->has_head && asked->to_write.len) {
        size_t taken = client_write_body(call, asked->to_write);

        if (!taken)
            break;
        asked->to_write = str_from(asked->to_write, taken);
        if (!asked->to_write.len)
            client_write_end(call);
    }
    if (call->has_head && !asked->reads_nothing)
        while ((n = client_read_body(call, asked->body + asked->len,
                                     sizeof(asked->body) - asked->len)) > 0)
            asked->len += (size_t)n;
    if (asked->over || !(call->fault || call->ended || (asked->reads_nothing && call->has_head)))
        return;
    asked->over = true;
    if (--awaited == 0)
        loop_break(loop);
}

static struct asked *prepare(unsigned index, const char *head)
{
    struct asked *asked = &calls[index];

    memset(asked, 0, sizeof(*asked));
    asked->call.target = (struct client_target){
        .key  = STR("http|test"),
        .host = STR("127.0.0.1"),
        .port = port,
    };
    asked->call.head     = str_of(head);
    asked->call.decodes  = true;
    asked->call.on_event = on_event;
    return asked;
}

static void start(struct asked *asked)
{
    awaited++;
    client_call_start(&asked->call, client, loop, &arenas);
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static struct asked *get(unsigned index)
{
    struct asked *asked = prepare(index, GET);

    start(asked);
    return asked;
}

/* A call that was run until it is over. */
static struct asked *run_get(void)
{
    struct asked *asked = get(0);

    loop_run(loop);
    return asked;
}

static void finish(struct asked *asked)
{
    client_call_close(&asked->call);
}

struct pause {
    struct timer timer;
};

static void on_pause(struct timer *timer)
{
    loop_break(loop);
}

/* Lets the loop see what has arrived. */
static void let_run(unsigned ms)
{
    struct pause pause;

    timer_init(&pause.timer, on_pause);
    timer_start(&pause.timer, loop, ms);
    loop_run(loop);
    timer_stop(&pause.timer, loop);
}

static void run_until(bool (*is_so)(void))
{
    for (int i = 0; i < 2000 && !is_so(); i++)
        let_run(10);
    CHECK(is_so());
}

#define CHECK_FAULT(asked, code)                                                                   \
    do {                                                                                           \
        CHECK((asked)->call.fault != NULL);                                                        \
        CHECK_STR((asked)->call.fault, code);                                                      \
    } while (0)

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* --- keeping ---------------------------------------------------------------------------------------------- */

TEST(a_connection_at_rest_serves_the_next_call)
{
    set_up(HELLO, NULL);
    for (int i = 0; i < 3; i++) {
        struct asked *asked = run_get();

        CHECK(asked->call.ended && !asked->call.fault);
        CHECK_MEM(asked->body, asked->len, "hello", 5);
        CHECK_INT(http_client_stats(client).idle, 1);
        finish(asked);
    }
    CHECK_INT(peer_count, 1);
    CHECK_INT(http_client_stats(client).reused, 2);
    tear_down();
}

TEST(a_response_in_pieces_of_any_size_is_the_same)
{
    for (size_t piece = 1; piece < 60; piece += 7) {
        struct asked *asked;

        set_up("HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n"
               "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n",
               NULL);
        script.piece = piece;
        asked        = run_get();
        CHECK(asked->call.ended);
        CHECK_MEM(asked->body, asked->len, "hello", 5);
        CHECK_INT(asked->call.response.trailer_count, 1);
        CHECK_INT(http_client_stats(client).idle, 1);
        finish(asked);
        tear_down();
    }
}

TEST(what_is_not_at_rest_is_closed)
{
    static const char *const TEXTS[] = {
        HELLO "more than was announced",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    };

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct asked *asked;

        set_up(TEXTS[i], NULL);
        asked = run_get();
        CHECK(asked->call.ended);
        CHECK_MEM(asked->body, asked->len, "hello", 5);
        CHECK_INT(http_client_stats(client).open, 0);
        finish(asked);
        tear_down();
    }
}

static bool nothing_is_open(void)
{
    return http_client_stats(client).open == 0;
}

TEST(an_idle_connection_that_speaks_or_ends_is_closed)
{
    for (int ends = 0; ends < 2; ends++) {
        set_up(HELLO, NULL);
        finish(run_get());
        CHECK_INT(http_client_stats(client).idle, 1);
        if (ends)
            peer_close(&peers[0]);
        else
            CHECK_INT(send(peers[0].fd, "x", 1, 0), 1);
        run_until(nothing_is_open);
        tear_down();
    }
}

TEST(an_idle_connection_is_closed_after_its_time)
{
    set_up(HELLO, &(struct client_options){ .idle_ms = 30 });
    finish(run_get());
    CHECK_INT(http_client_stats(client).idle, 1);
    run_until(nothing_is_open);
    tear_down();
}

/* Until the other end's kernel has all that was sent. */
static void await_arrival(int fd)
{
    int left = 1;

    for (unsigned ms = 0; ms < 20000 && left; ms++) {
        CHECK_INT(ioctl(fd, SIOCOUTQ, &left), 0);
        if (left)
            usleep(1000);
    }
    CHECK_INT(left, 0);
}

TEST(a_stray_response_before_the_next_request_is_nobodys)
{
    struct asked *asked;

    set_up(HELLO, NULL);
    finish(run_get());
    /* it has arrived, and the loop has not yet seen it */
    CHECK(send(peers[0].fd, HELLO, strlen(HELLO), 0) > 0);
    await_arrival(peers[0].fd);
    asked = run_get();
    CHECK(asked->call.ended);
    CHECK_INT(peer_count, 2);
    finish(asked);
    tear_down();
}

TEST(closing_a_call_in_the_middle_closes_its_connection)
{
    struct asked *asked;

    set_up("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello", NULL);
    asked                = prepare(0, GET);
    asked->reads_nothing = true;
    start(asked);
    loop_run(loop);
    CHECK(asked->call.has_head);
    CHECK_INT(http_client_stats(client).open, 1);
    finish(asked);
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

/* --- bounds ------------------------------------------------------------------------------------------------ */

static struct asked *get_of(unsigned index, struct str key)
{
    struct asked *asked = prepare(index, GET);

    asked->call.target.key = key;
    start(asked);
    return asked;
}

TEST(calls_beyond_the_bound_of_an_origin_wait_for_a_connection)
{
    set_up(HELLO, &(struct client_options){ .per_origin = 1 });
    for (unsigned i = 0; i < 4; i++)
        get(i);
    CHECK_INT(http_client_stats(client).waiting, 3);
    CHECK_INT(http_client_stats(client).open, 1);
    loop_run(loop);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(calls[i].call.ended);
        finish(&calls[i]);
    }
    CHECK_INT(peer_count, 1);
    CHECK_INT(http_client_stats(client).waiting, 0);
    tear_down();
}

TEST(an_idle_connection_of_another_origin_makes_room)
{
    set_up(HELLO, &(struct client_options){ .total = 1 });
    get_of(0, STR("one"));
    get_of(1, STR("two"));
    CHECK_INT(http_client_stats(client).waiting, 1);
    loop_run(loop);
    CHECK(calls[0].call.ended && calls[1].call.ended);
    CHECK_INT(peer_count, 2);
    CHECK_INT(http_client_stats(client).open, 1);
    finish(&calls[0]);
    finish(&calls[1]);
    tear_down();
}

TEST(lowered_bounds_hold_for_what_is_open_already)
{
    set_up(HELLO, NULL);
    for (unsigned i = 0; i < 3; i++)
        get_of(i, STR("one"));
    get_of(3, STR("two"));
    loop_run(loop);
    CHECK_INT(http_client_stats(client).idle, 4);
    for (unsigned i = 0; i < 4; i++)
        finish(&calls[i]);

    http_client_configure(client, &(struct client_options){ .total = 1 });
    for (unsigned i = 0; i < 3; i++)
        get_of(i, STR("one"));
    CHECK_INT(http_client_stats(client).open, 1);
    CHECK_INT(http_client_stats(client).waiting, 2);
    loop_run(loop);
    for (unsigned i = 0; i < 3; i++)
        finish(&calls[i]);
    tear_down();
}

TEST(who_waits_gives_up_his_place_when_closed_or_late)
{
    set_up(NULL, &(struct client_options){ .per_origin = 1 });
    get(0);
    get(1);
    calls[2]                       = (struct asked){ .over = false };
    prepare(2, GET)->call.total_ms = 20;
    start(&calls[2]);
    CHECK_INT(http_client_stats(client).waiting, 2);
    finish(&calls[1]);
    awaited--;
    CHECK_INT(http_client_stats(client).waiting, 1);
    awaited--; /* the first one hears nothing */
    loop_run(loop);
    CHECK_FAULT(&calls[2], "timeout");
    CHECK_INT(calls[2].call.sent, CALL_UNSENT);
    CHECK_INT(http_client_stats(client).waiting, 0);
    finish(&calls[0]);
    finish(&calls[2]);
    awaited = 0;
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

/* --- faults ------------------------------------------------------------------------------------------------ */

TEST(a_server_that_closes_or_breaks_off_is_told_of)
{
    static const struct {
        const char *text, *code;
    } CASES[] = {
        { NULL, "closed" },
        { "HTTP/1.1 200 OK\r\nConte", "bad_response" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "closed" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "closed" },
        { "SSH-2.0-OpenSSH\r\n", "bad_response" },
        { "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "bad_response" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad_response" },
        { "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
          "bad_response" },
    };

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct asked *asked;

        set_up(CASES[i].text, NULL);
        script.closes = true;
        asked         = run_get();
        CHECK_FAULT(asked, CASES[i].code);
        CHECK_INT(asked->call.sent, CALL_SENT);
        CHECK_INT(http_client_stats(client).open, 0);
        finish(asked);
        tear_down();
    }
}

TEST(a_body_until_the_end_of_the_connection_is_whole)
{
    struct asked *asked;

    set_up("HTTP/1.1 200 OK\r\n\r\nas it comes", NULL);
    script.closes = true;
    asked         = run_get();
    CHECK(asked->call.ended);
    CHECK_MEM(asked->body, asked->len, "as it comes", 11);
    finish(asked);
    tear_down();
}

TEST(nobody_there_is_refused_and_unsent)
{
    struct asked *asked;

    set_up(HELLO, NULL);
    io_stop(&door);
    close(door_fd);
    door_fd = -1;
    asked   = run_get();
    CHECK_FAULT(asked, "refused");
    CHECK_INT(asked->call.sent, CALL_UNSENT);
    finish(asked);
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

TEST(silence_ends_at_its_limits)
{
    struct asked *asked;

    set_up(NULL, NULL);
    asked                     = prepare(0, GET);
    asked->call.first_byte_ms = 20;
    asked->call.total_ms      = 60 * 1000;
    start(asked);
    loop_run(loop);
    CHECK_FAULT(asked, "timeout");
    finish(asked);

    asked                = prepare(0, GET);
    asked->call.total_ms = 20;
    start(asked);
    loop_run(loop);
    CHECK_FAULT(asked, "timeout");
    finish(asked);
    CHECK_INT(http_client_stats(client).open, 0);
    tear_down();
}

TEST(a_kept_connection_that_ends_before_it_answers_is_stale)
{
    struct asked *asked;

    set_up(HELLO, NULL);
    finish(run_get());
    script = (struct script){ .closes = true }; /* reads the next request, then closes */
    asked  = run_get();
    CHECK_FAULT(asked, "closed");
    CHECK_INT(asked->call.sent, CALL_STALE);
    finish(asked);
    tear_down();
}

/* --- bodies that are sent ------------------------------------------------------------------------------------ */

TEST(head_and_body_go_out_together)
{
    struct asked *asked;

    set_up(HELLO, NULL);
    asked            = prepare(0, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    asked->call.body = STR("abc");
    start(asked);
    loop_run(loop);
    CHECK(asked->call.ended);
    CHECK(strstr(peers[0].got, "\r\n\r\nabc") != NULL);
    finish(asked);
    tear_down();
}

static bool chunks_have_come(void)
{
    return strstr(peers[0].got, "\r\n\r\n5\r\nhello\r\n0\r\n\r\n") != NULL;
}

TEST(a_body_in_pieces_is_chunked)
{
    struct asked *asked;

    set_up(NULL, NULL);
    asked = prepare(0, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    asked->call.body_kind = CALL_BODY_CHUNKED;
    asked->to_write       = STR("hello");
    start(asked);
    run_until(chunks_have_come);
    finish(asked);
    awaited = 0;
    tear_down();
}

TEST(a_body_that_is_shorter_or_longer_than_announced_fails)
{
    for (int longer = 0; longer < 2; longer++) {
        struct asked *asked;

        set_up(NULL, NULL);
        asked = prepare(0, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
        asked->call.body_kind = CALL_BODY_LENGTH;
        asked->call.body_left = 4;
        start(asked);
        asked->to_write = longer ? STR("hello") : STR("hel");
        loop_run(loop);
        CHECK_FAULT(asked, "closed");
        finish(asked);
        CHECK_INT(http_client_stats(client).open, 0);
        tear_down();
    }
}

TEST(an_answer_before_the_body_is_whole_ends_the_connection)
{
    struct asked *asked;

    set_up("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n", NULL);
    asked = prepare(0, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    asked->call.body_kind = CALL_BODY_CHUNKED;
    start(asked);
    loop_run(loop);
    CHECK(asked->call.ended);
    CHECK_INT(asked->call.response.status, 413);
    CHECK_INT(http_client_stats(client).open, 0);
    CHECK_INT(client_write_body(&asked->call, STR("abc")), 3); /* to nowhere */
    finish(asked);
    tear_down();
}

int main(void)
{
    return check_run();
}
