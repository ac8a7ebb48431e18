#include "net/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/check.h"
#include "support/dns_server.h"

enum { PATIENCE_MS = 20000 };

struct bed {
    struct dns_server server;
    struct loop      *loop;
    struct dns       *dns;
    struct dial       dial;
    struct timer      patience, pass;
    unsigned          calls;
};

static struct bed *bed_of_dial; /* dial has no `arg`: its owner embeds it */

static void on_done(struct dial *dial)
{
    bed_of_dial->calls++;
    loop_break(dial->loop);
}

static void on_patience(struct timer *timer)
{
    fprintf(stderr, "not dialled within the test's patience\n");
    abort();
}

static void bed_open(struct bed *bed)
{
    struct dns_options options = { .hosts_path  = "/dev/null",
                                   .resolv_path = "/dev/null",
                                   .timeout_ms  = 5000 };
    struct err         err;

    memset(bed, 0, sizeof(*bed));
    bed_of_dial = bed;
    dns_server_start(&bed->server);
    options.servers = bed->server.address;
    CHECK_INT(loop_open(&bed->loop, &err), 0);
    CHECK_INT(dns_open(&bed->dns, bed->loop, &options, &err), 0);
    bed->dial.done = on_done;
    timer_init(&bed->patience, on_patience);
    timer_start(&bed->patience, bed->loop, PATIENCE_MS);
}

static void bed_close(struct bed *bed)
{
    if (bed->dial.fd > 0 && bed->calls)
        close(bed->dial.fd);
    dns_close(bed->dns);
    timer_stop(&bed->patience, bed->loop);
    loop_close(bed->loop);
    dns_server_stop(&bed->server);
}

static void start(struct bed *bed, const char *host, uint16_t port, uint64_t timeout_ms)
{
    const struct dial_target target = { .host       = str_of(host),
                                        .port       = port,
                                        .timeout_ms = timeout_ms };

    dial_start(&bed->dial, bed->dns, bed->loop, &target);
    CHECK_INT(bed->calls, 0);
}

static void dial(struct bed *bed, const char *host, uint16_t port, uint64_t timeout_ms)
{
    start(bed, host, port, timeout_ms);
    loop_run(bed->loop);
    CHECK_INT(bed->calls, 1);
}

static void dial_path(struct bed *bed, const char *path, uint64_t timeout_ms)
{
    const struct dial_target target = { .path = path, .timeout_ms = timeout_ms };

    dial_start(&bed->dial, bed->dns, bed->loop, &target);
    loop_run(bed->loop);
    CHECK_INT(bed->calls, 1);
}

static int listen_at(const char *host, uint16_t *port, int backlog)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_port = htons(*port) };
    socklen_t          len = sizeof(at);
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int                one = 1;

    inet_pton(AF_INET, host, &at.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0);
    CHECK(listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* A port on which connecting neither works nor fails: its queue is full. Needs Linux to drop SYNs
 * then, which it does by default. */
static int listen_deaf(const char *host, uint16_t *port, int fillers[4])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    int                fd = listen_at(host, port, 0);

    inet_pton(AF_INET, host, &at.sin_addr);
    at.sin_port = htons(*port);
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fillers[i], (struct sockaddr *)&at, sizeof(at));
    }
    return fd;
}

static void close_deaf(int fd, const int fillers[4])
{
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
    close(fd);
}

/* --- connecting -------------------------------------------------------------------------------- */

TEST(an_address_is_connected_to)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fd   = listen_at("127.0.0.1", &port, 8);
    char       text[ADDR_TEXT_BYTES], want[ADDR_TEXT_BYTES];

    bed_open(&bed);
    dial(&bed, "127.0.0.1", port, 5000);
    CHECK_INT(bed.dial.rc, 0);
    CHECK(bed.dial.fd >= 0);
    snprintf(want, sizeof(want), "127.0.0.1:%u", port);
    CHECK_STR(addr_format(&bed.dial.peer, text), want);
    CHECK(send(bed.dial.fd, "x", 1, MSG_NOSIGNAL) == 1);
    bed_close(&bed);
    close(fd);
}

TEST(a_name_is_looked_up_first)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fd   = listen_at("127.0.0.1", &port, 8);

    bed_open(&bed);
    dial(&bed, "loop1.test", port, 5000);
    CHECK_INT(bed.dial.rc, 0);
    bed_close(&bed);
    close(fd);
}

TEST(localhost_reaches_whichever_family_listens)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fd   = listen_at("127.0.0.1", &port, 8);

    bed_open(&bed);
    dial(&bed, "localhost", port, 5000);
    CHECK_INT(bed.dial.rc, 0);
    bed_close(&bed);
    close(fd);
}

TEST(an_address_that_refuses_gives_way_to_the_next)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fd   = listen_at("127.0.0.1", &port, 8);

    bed_open(&bed);
    dial(&bed, "race.test", port, 5000);
    CHECK_INT(bed.dial.rc, 0);
    CHECK_INT(bed.dial.peer.at.v4.s_addr, htonl(INADDR_LOOPBACK));
    bed_close(&bed);
    close(fd);
}

TEST(an_address_that_does_not_answer_is_raced_past)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fillers[4];
    int        dead = listen_deaf("127.0.0.9", &port, fillers);
    int        fd   = listen_at("127.0.0.1", &port, 8);

    bed_open(&bed);
    dial(&bed, "race.test", port, 10000);
    CHECK_INT(bed.dial.rc, 0);
    CHECK_INT(bed.dial.peer.at.v4.s_addr, htonl(INADDR_LOOPBACK));
    bed_close(&bed);
    close(fd);
    close_deaf(dead, fillers);
}

TEST(more_addresses_than_racers_are_all_tried)
{
    static const char *const hosts[] = { "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14" };
    struct bed               bed;
    uint16_t                 port = 0;
    int                      deaf[4], fillers[4][4];
    int                      fd;

    for (int i = 0; i < 4; i++)
        deaf[i] = listen_deaf(hosts[i], &port, fillers[i]);
    fd = listen_at("127.0.0.1", &port, 8);
    bed_open(&bed);
    dial(&bed, "crowd.test", port, 15000);
    CHECK_INT(bed.dial.rc, 0);
    CHECK_INT(bed.dial.peer.at.v4.s_addr, htonl(INADDR_LOOPBACK));
    bed_close(&bed);
    close(fd);
    for (int i = 0; i < 4; i++)
        close_deaf(deaf[i], fillers[i]);
}

/* --- faults ------------------------------------------------------------------------------------ */

/* Bound, so that nobody else gets the port, and without a listener. */
static int refuse_at(uint16_t *port)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof(at);
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

TEST(a_refusal_says_where)
{
    struct bed bed;
    uint16_t   port;
    int        fd = refuse_at(&port);
    char       want[96];

    bed_open(&bed);
    dial(&bed, "127.0.0.1", port, 5000);
    CHECK_INT(bed.dial.rc, ERR_CLOSED);
    CHECK_INT(bed.dial.fd, -1);
    snprintf(want, sizeof(want), "127.0.0.1:%u: connection refused", port);
    CHECK_STR(bed.dial.err.text, want);
    bed_close(&bed);
    close(fd);
}

TEST(a_refusal_by_a_name_tells_both)
{
    struct bed bed;
    uint16_t   port;
    int        fd = refuse_at(&port);
    char       want[96];

    bed_open(&bed);
    dial(&bed, "loop1.test", port, 5000);
    snprintf(want, sizeof(want), "loop1.test:%u (127.0.0.1): connection refused", port);
    CHECK_STR(bed.dial.err.text, want);
    bed_close(&bed);
    close(fd);
}

TEST(a_name_that_does_not_exist_is_not_found)
{
    struct bed bed;

    bed_open(&bed);
    dial(&bed, "nothing.test", 80, 5000);
    CHECK_INT(bed.dial.rc, ERR_NOT_FOUND);
    CHECK_STR(bed.dial.err.text, "nothing.test: no such name");
    bed_close(&bed);
}

TEST(the_limit_counts_for_connecting)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fillers[4];
    int        fd = listen_deaf("127.0.0.1", &port, fillers);
    char       want[96];

    bed_open(&bed);
    dial(&bed, "127.0.0.1", port, 100);
    CHECK_INT(bed.dial.rc, ERR_TIMEOUT);
    snprintf(want, sizeof(want), "127.0.0.1:%u: not connected in time", port);
    CHECK_STR(bed.dial.err.text, want);
    bed_close(&bed);
    close_deaf(fd, fillers);
}

TEST(the_limit_counts_for_resolving)
{
    struct bed bed;

    bed_open(&bed);
    dial(&bed, "silent.test", 80, 50);
    CHECK_INT(bed.dial.rc, ERR_TIMEOUT);
    CHECK_STR(bed.dial.err.text, "silent.test: no answer from the name server in time");
    bed_close(&bed);
}

/* --- calling off ------------------------------------------------------------------------------- */

static void on_pass_over(struct timer *timer)
{
    loop_break(container_of(timer, struct bed, pass)->loop);
}

static void run_for(struct bed *bed, unsigned ms)
{
    timer_init(&bed->pass, on_pass_over);
    timer_start(&bed->pass, bed->loop, ms);
    loop_run(bed->loop);
}

TEST(a_cancelled_dial_is_silent_in_any_state)
{
    struct bed bed;
    uint16_t   port = 0;
    int        fillers[4];
    int        fd = listen_deaf("127.0.0.1", &port, fillers);

    bed_open(&bed);
    start(&bed, "silent.test", 80, 5000); /* resolving */
    dial_cancel(&bed.dial);
    dial_cancel(&bed.dial);
    start(&bed, "127.0.0.1", port, 5000); /* connecting */
    run_for(&bed, 20);
    dial_cancel(&bed.dial);
    start(&bed, "no name", 80, 5000); /* failed, and not told yet */
    dial_cancel(&bed.dial);
    run_for(&bed, 20);
    CHECK_INT(bed.calls, 0);
    CHECK_INT(dns_pending(bed.dns), 0);
    bed_close(&bed);
    close_deaf(fd, fillers);
}

/* --- Unix sockets ------------------------------------------------------------------------------ */

static int listen_unix(const char *path, int backlog)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(listen(fd, backlog) == 0);
    return fd;
}

TEST(a_unix_path_is_dialled)
{
    char       folder[] = "/tmp/srv-dial-XXXXXX", path[64];
    struct bed bed;
    int        fd;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/s", folder);
    fd = listen_unix(path, 8);
    bed_open(&bed);
    dial_path(&bed, path, 5000);
    CHECK_INT(bed.dial.rc, 0);
    CHECK_INT(bed.dial.peer.family, AF_UNIX);
    bed_close(&bed);
    close(fd);
    unlink(path);
    rmdir(folder);
}

TEST(a_path_where_nobody_listens_is_refused)
{
    struct bed bed;

    bed_open(&bed);
    dial_path(&bed, "/nonexistent/s", 5000);
    CHECK_INT(bed.dial.rc, ERR_CLOSED);
    CHECK_STR(bed.dial.err.text, "unix:/nonexistent/s: no such file or directory");
    bed_close(&bed);
}

TEST(a_unix_socket_with_a_full_queue_is_waited_for)
{
    char       folder[] = "/tmp/srv-dial-XXXXXX", path[64];
    struct bed bed;
    int        fd, filler;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/s", folder);
    fd = listen_unix(path, 0);
    bed_open(&bed);
    dial_path(&bed, path, 5000);
    filler    = bed.dial.fd;
    bed.calls = 0;
    dial_path(&bed, path, 50);
    CHECK_INT(bed.dial.rc, ERR_TIMEOUT);
    close(accept(fd, NULL, NULL));
    bed.calls = 0;
    dial_path(&bed, path, 5000);
    CHECK_INT(bed.dial.rc, 0);
    bed_close(&bed);
    close(filler);
    close(fd);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    return check_run();
}
