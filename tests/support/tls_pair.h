/* tests/support/tls_pair.h - two streams over one pair of sockets, both TLS, in one loop: what a test of
 * net/tls_* begins with. Include behind check.h. */
#ifndef TESTS_SUPPORT_TLS_PAIR_H
#define TESTS_SUPPORT_TLS_PAIR_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/stream.h"
#include "net/tls.h"
#include "support/check.h"
#include "support/tls_make.h"

/* One end. It reads by itself what comes, if told so. */
struct tls_end {
    struct stream stream;
    bool          is_open;
    bool          reads;
    unsigned      events;
    ssize_t       last; /* what the last read returned */
    struct buf    got;
};

static struct loop   *loop;
static struct tls    *tls;
static struct tls_end ours, theirs; /* the server's and the client's */
static struct err     pair_err;

static struct tls_made authority, made; /* of most tests */

#define PAIR_OK(rc)                                                                                \
    do {                                                                                           \
        int rc_ = (rc);                                                                            \
        if (rc_ != 0)                                                                              \
            fprintf(stderr, "%s\n", pair_err.text);                                                \
        CHECK_INT(rc_, 0);                                                                         \
    } while (0)

static inline struct tls_pem pem(const struct buf *text)
{
    return (struct tls_pem){ .text = buf_str(text) };
}

static inline struct tls_identity identity(const struct tls_made *of)
{
    return (struct tls_identity){ pem(&of->cert), pem(&of->key) };
}

/* Certificates live as long as the program, for making keys takes time. */
static inline void make_cert(struct tls_made *to, struct tls_wish wish)
{
    if (!wish.days)
        wish.days = 30;
    PAIR_OK(tls_make(to, &wish, &pair_err));
}

static inline void make_certs(void)
{
    static const char *const NAMES[] = { "a.example", "127.0.0.1", NULL };

    if (authority.cert.at)
        return;
    make_cert(&authority, (struct tls_wish){ .subject = "test authority", .is_authority = true });
    make_cert(&made, (struct tls_wish){ .names = NAMES, .issuer = &authority });
}

static inline void forget_certs(void)
{
    tls_made_fini(&authority);
    tls_made_fini(&made);
}

/* --- ends ---------------------------------------------------------------------------------------- */

static inline void end_read(struct tls_end *end)
{
    char bytes[4096];

    do {
        end->last = stream_read(&end->stream, bytes, sizeof(bytes));
        if (end->last > 0)
            buf_add(&end->got, bytes, (size_t)end->last);
    } while (end->last > 0 && end->stream.can_read);
}

static inline void end_on_event(struct stream *stream, void *arg)
{
    struct tls_end *end = arg;

    end->events++;
    if (end->reads && stream->can_read)
        end_read(end);
    loop_break(loop);
}

static inline void end_open(struct tls_end *end, int fd)
{
    *end = (struct tls_end){ .is_open = true, .reads = true };
    buf_init(&end->got, SIZE_MAX);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK_INT(stream_init(&end->stream, loop, fd, end_on_event, end), 0);
}

static inline void end_close(struct tls_end *end)
{
    if (!end->is_open)
        return;
    stream_fini(&end->stream);
    buf_fini(&end->got);
    end->is_open = false;
}

static inline ssize_t end_send(struct tls_end *end, const char *text)
{
    struct iovec iov = { (char *)text, strlen(text) };

    return stream_writev(&end->stream, &iov, 1);
}

/* --- the loop ------------------------------------------------------------------------------------- */

static bool pair_is_late;

static inline void pair_on_late(struct timer *timer)
{
    pair_is_late = true;
    loop_break(loop);
}

/* Runs the loop until CLAIM holds, 10 seconds at most. */
#define RUN_UNTIL(claim)                                                                           \
    do {                                                                                           \
        struct timer late_;                                                                        \
        pair_is_late = false;                                                                      \
        timer_init(&late_, pair_on_late);                                                          \
        timer_start(&late_, loop, 10000);                                                          \
        while (!(claim) && !pair_is_late)                                                          \
            loop_run(loop);                                                                        \
        timer_stop(&late_, loop);                                                                  \
        CHECK(claim);                                                                              \
    } while (0)

static inline void pair_on_time(struct timer *timer)
{
    loop_break(loop);
}

/* For claims that nothing happens. */
static inline void run_for_ms(unsigned ms)
{
    struct timer timer;
    uint64_t     end = loop_clock_ns(loop) + (uint64_t)ms * 1000000;

    timer_init(&timer, pair_on_time);
    while (loop_clock_ns(loop) < end) {
        timer_start(&timer, loop, ms);
        loop_run(loop);
        timer_stop(&timer, loop);
    }
}

/* One turn, in which something may happen. */
static inline void run_turn(void)
{
    struct timer timer;

    timer_init(&timer, pair_on_time);
    timer_start(&timer, loop, 0);
    loop_run(loop);
    timer_stop(&timer, loop);
}

/* --- a wire that the test holds in hand ------------------------------------------------------------ */

/* Between the two ends: bytes go on when the test says so (wire_open()). */
static int wire_ours = -1, wire_theirs = -1;

static inline void wire_cut(int *wire)
{
    if (*wire >= 0)
        close(*wire);
    *wire = -1;
}

static inline void wire_close(void)
{
    wire_cut(&wire_ours);
    wire_cut(&wire_theirs);
}

/* At most LEN bytes; what went is in BYTES. */
static inline size_t wire_move(int from, int to, unsigned char *bytes, size_t len)
{
    ssize_t n = recv(from, bytes, len, 0);

    if (n <= 0)
        return 0;
    CHECK_INT(send(to, bytes, (size_t)n, 0), n);
    return (size_t)n;
}

/* LEN bytes at a time, each way, with a turn of the loop behind each, until the wire is silent. */
static inline void wire_run(size_t len)
{
    unsigned char bytes[65536];
    unsigned      silent = 0;

    while (silent < 8) {
        size_t went = wire_move(wire_theirs, wire_ours, bytes, len) +
                      wire_move(wire_ours, wire_theirs, bytes, len);

        run_turn();
        silent = went ? 0 : silent + 1;
    }
}

/* --- life ------------------------------------------------------------------------------------------- */

static inline void pair_close(void)
{
    end_close(&ours);
    end_close(&theirs);
    wire_close();
}

/* What a test that failed has left is let go. */
static inline void pair_start(void)
{
    pair_close();
    signal(SIGPIPE, SIG_IGN);
    make_certs();
    if (loop)
        return;
    CHECK_INT(loop_open(&loop, &pair_err), 0);
    PAIR_OK(tls_open(&tls, loop, &pair_err));
}

/* The plain sockets; SEND_BYTES: their buffers' size, 0: the system's. */
static inline void pair_open(int send_bytes)
{
    int fds[2];

    pair_start();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    for (int i = 0; i < 2 && send_bytes; i++)
        CHECK(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) == 0);
    end_open(&ours, fds[0]);
    end_open(&theirs, fds[1]);
}

static inline void pair_end(void)
{
    pair_close();
    tls_close(tls);
    loop_close(loop);
    tls  = NULL;
    loop = NULL;
}

static inline void wire_open(void)
{
    int a[2], b[2];

    pair_start();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b) == 0);
    wire_ours   = a[1];
    wire_theirs = b[1];
    end_open(&ours, a[0]);
    end_open(&theirs, b[0]);
}

/* --- both sides ------------------------------------------------------------------------------------ */

static inline struct tls_server *new_server(const struct tls_server_options *options)
{
    struct tls_server *server = NULL;

    PAIR_OK(tls_server_open(&server, tls, options, &pair_err));
    return server;
}

static inline struct tls_client *new_client(const struct tls_client_options *options)
{
    struct tls_client *client = NULL;

    PAIR_OK(tls_client_open(&client, tls, options, &pair_err));
    return client;
}

/* With `made`, and one who trusts its authority. */
static inline struct tls_server *plain_server(void)
{
    struct tls_identity own = identity(&made);

    return new_server(&(struct tls_server_options){ .identities = &own, .identity_count = 1 });
}

static inline struct tls_client *plain_client(void)
{
    return new_client(&(struct tls_client_options){ .ca = pem(&authority.cert) });
}

static inline void begin(struct tls_server *server, struct tls_client *client,
                         struct tls_target target)
{
    CHECK_INT(tls_accept(&ours.stream, server, STR_NONE), 0);
    PAIR_OK(tls_connect(&theirs.stream, client, &target, &pair_err));
}

static inline bool is_decided(const struct tls_end *end)
{
    return tls_info(&end->stream) || tls_fault_kind(&end->stream) != TLS_WELL;
}

/* A whole handshake, whatever it comes to. */
static inline void shake(struct tls_server *server, struct tls_client *client, const char *name,
                         const char *key)
{
    begin(server, client, (struct tls_target){ .name = str_of(name), .key = str_of(key) });
    RUN_UNTIL(is_decided(&ours) && is_decided(&theirs));
}

static inline void shake_well(struct tls_server *server, struct tls_client *client)
{
    shake(server, client, "a.example", "");
    CHECK_STR(tls_fault(&ours.stream), "");
    CHECK_STR(tls_fault(&theirs.stream), "");
}

#endif
