#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "support/check.h"

static struct addr parse(const char *text)
{
    struct addr addr;
    struct err  err;

    CHECK_INT(addr_parse(&addr, text, &err), 0);
    return addr;
}

static struct listener *open_at(const struct addr *at, unsigned slots)
{
    struct listener *listener;
    struct err       err;

    CHECK_INT(listener_open(&listener, at, slots, &err), 0);
    return listener;
}

static struct listener *open_local(unsigned slots)
{
    struct addr at = parse("127.0.0.1:0");

    return open_at(&at, slots);
}

static int open_fails(const struct addr *at, const char *because)
{
    struct listener *listener = NULL;
    struct err       err;
    int              rc = listener_open(&listener, at, 2, &err);

    CHECK(rc < 0 && listener == NULL);
    if (!strstr(err.text, because))
        CHECK_STR(err.text, because);
    return rc;
}

static int dial(const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);
    int                     fd  = socket(at->family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&sa, len) == 0);
    return fd;
}

/* --- sockets -------------------------------------------------------------------------------- */

TEST(port_zero_takes_a_free_port_that_all_slots_share)
{
    struct listener        *listener = open_local(3);
    struct sockaddr_storage sa;
    struct addr             bound;

    CHECK(listener_addr(listener)->port != 0);
    for (unsigned slot = 0; slot < 3; slot++) {
        socklen_t len = sizeof(sa);

        CHECK(slot == 0 || listener_fd(listener, slot) != listener_fd(listener, slot - 1));
        CHECK(getsockname(listener_fd(listener, slot), (struct sockaddr *)&sa, &len) == 0);
        addr_from_sockaddr(&bound, (struct sockaddr *)&sa, len);
        CHECK(addr_is_equal(&bound, listener_addr(listener)));
    }
    listener_close(listener);
}

TEST(a_taken_port_is_an_error_also_when_it_is_ours)
{
    struct listener *listener = open_local(2);
    struct addr      at       = *listener_addr(listener);

    CHECK_INT(open_fails(&at, "cannot listen on 127.0.0.1:"), ERR_IN_USE);
    listener_close(listener);
    listener = open_at(&at, 1); /* free again */
    listener_close(listener);
}

TEST(an_address_of_another_machine_is_an_error)
{
    struct addr at = parse("192.0.2.1:0");

    CHECK_INT(open_fails(&at, "192.0.2.1"), ERR_SYSTEM);
}

static bool has_waiting(int fd)
{
    int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (got >= 0)
        close(got);
    return got >= 0;
}

TEST(connections_are_spread_over_the_slots)
{
    struct listener *listener   = open_local(2);
    unsigned         waiting[2] = { 0, 0 };
    int              fds[64];

    for (unsigned i = 0; i < 64; i++)
        fds[i] = dial(listener_addr(listener));
    for (unsigned slot = 0; slot < 2; slot++)
        while (has_waiting(listener_fd(listener, slot)))
            waiting[slot]++;
    CHECK_INT(waiting[0] + waiting[1], 64);
    CHECK(waiting[0] > 0 && waiting[1] > 0);
    for (unsigned i = 0; i < 64; i++)
        close(fds[i]);
    listener_close(listener);
}

TEST(held_sockets_are_taken_up_again_and_siblings_join_them)
{
    struct listener *before  = open_local(2), *after;
    struct addr      at      = parse("127.0.0.1:0");
    int              held[2] = { listener_fd(before, 0), listener_fd(before, 1) };
    int              guest   = dial(listener_addr(before));
    unsigned         waiting = 0;
    struct err       err;

    CHECK_INT(listener_reopen(&after, &at, held, 2, 3, &err), 0);
    CHECK(addr_is_equal(listener_addr(after), listener_addr(before)));
    listener_close(before);
    for (unsigned slot = 0; slot < 3; slot++)
        waiting += has_waiting(listener_fd(after, slot));
    CHECK_INT(waiting, 1); /* who had come before is not lost */
    close(guest);
    listener_close(after);
}

/* Machines without IPv6 have nothing to say here. */
TEST(the_ipv6_wildcard_takes_ipv4_too)
{
    struct addr      at = parse("[::]:0"), v4;
    struct listener *listener;
    int              fd;

    if (listener_open(&listener, &at, 1, NULL) < 0) {
        CHECK(access("/proc/net/if_inet6", F_OK) < 0);
        return;
    }
    v4      = parse("127.0.0.1:0");
    v4.port = listener_addr(listener)->port;
    fd      = dial(&v4);
    CHECK(has_waiting(listener_fd(listener, 0)));
    close(fd);
    listener_close(listener);
}

/* --- Unix paths ----------------------------------------------------------------------------- */

static char dir[] = "/tmp/listener_test.XXXXXX";
static char path[sizeof(dir) + 2];

static struct addr unix_addr(void)
{
    struct addr at;

    if (path[0] == '\0') {
        CHECK(mkdtemp(dir) != NULL);
        snprintf(path, sizeof(path), "%s/s", dir);
    }
    CHECK(addr_parse_path(&at, path, NULL) == 0);
    return at;
}

static void remove_dir(void)
{
    if (path[0])
        rmdir(dir);
}

TEST(slots_of_a_unix_path_share_one_socket_and_its_file_is_removed_by_us)
{
    struct addr      at       = unix_addr();
    struct listener *listener = open_at(&at, 4);
    int              fd       = dial(&at);

    CHECK_INT(listener_fd(listener, 3), listener_fd(listener, 0));
    CHECK(has_waiting(listener_fd(listener, 1)));
    close(fd);
    listener_withdraw(listener);
    CHECK(access(path, F_OK) < 0);
}

TEST(a_unix_path_on_which_somebody_listens_is_taken)
{
    struct addr      at       = unix_addr();
    struct listener *listener = open_at(&at, 1);

    CHECK_INT(open_fails(&at, "another server does"), ERR_IN_USE);
    CHECK(access(path, F_OK) == 0);
    listener_withdraw(listener);
}

TEST(a_socket_file_that_nobody_serves_is_replaced)
{
    struct addr      at       = unix_addr();
    struct listener *listener = open_at(&at, 1);
    int              fd;

    listener_close(listener);
    CHECK(access(path, F_OK) == 0); /* as a killed server leaves it */
    listener = open_at(&at, 1);
    fd       = dial(&at);
    CHECK(has_waiting(listener_fd(listener, 0)));
    close(fd);
    listener_withdraw(listener);
    CHECK(access(path, F_OK) < 0);
}

TEST(a_held_unix_socket_is_taken_up_again_for_all_slots)
{
    struct addr      at     = unix_addr();
    struct listener *before = open_at(&at, 1), *after;
    int              held   = listener_fd(before, 0);
    int              fd;

    CHECK_INT(listener_reopen(&after, &at, &held, 1, 4, NULL), 0);
    listener_close(before);
    fd = dial(&at);
    CHECK(has_waiting(listener_fd(after, 3)));
    close(fd);
    listener_withdraw(after);
    CHECK(access(path, F_OK) < 0);
}

/* As where root has opened the first, and is root no more. */
TEST(slots_share_what_is_held_where_no_sibling_can_be_had)
{
    struct addr             at = parse("127.0.0.1:0");
    struct listener        *after;
    struct sockaddr_storage sa;
    socklen_t               len  = addr_to_sockaddr(&at, &sa);
    int                     held = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    CHECK(bind(held, (struct sockaddr *)&sa, len) == 0 && listen(held, 1) == 0);
    CHECK_INT(listener_reopen(&after, &at, &held, 1, 3, NULL), 0);
    CHECK(listener_addr(after)->port != 0);
    CHECK_INT(listener_fd(after, 2), listener_fd(after, 0));
    listener_close(after);
    close(held);
}

TEST(a_path_that_another_server_took_is_not_removed)
{
    struct addr      at  = unix_addr();
    struct listener *old = open_at(&at, 1), *new;
    int              fd;

    CHECK(unlink(path) == 0);
    new = open_at(&at, 1);
    listener_withdraw(old);
    fd = dial(&at);
    close(fd);
    listener_withdraw(new);
}

TEST(a_file_that_is_no_socket_is_left_alone)
{
    struct addr at = unix_addr();
    int         fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(open_fails(&at, "no socket"), ERR_EXISTS);
    CHECK(access(path, F_OK) == 0);
    close(fd);
    unlink(path);
}

TEST(an_abstract_name_needs_no_file)
{
    char             name[64];
    struct addr      at;
    struct listener *listener;
    int              fd;

    snprintf(name, sizeof(name), "unix:@listener_test.%d", (int)getpid());
    at       = parse(name);
    listener = open_at(&at, 2);
    fd       = dial(&at);
    CHECK(has_waiting(listener_fd(listener, 0)));
    CHECK_INT(open_fails(&at, name), ERR_IN_USE);
    close(fd);
    listener_withdraw(listener);
}

/* --- watching ------------------------------------------------------------------------------- */

enum { GUESTS_MAX = 256 };

struct host {
    struct loop          *loop;
    struct listener_watch watch;
    struct addr           peer;
    int                   fds[GUESTS_MAX];
    unsigned              accepted;
    unsigned              wanted; /* break the loop then */
    unsigned              stop_at;
    unsigned              faults;
    int                   fault;
};

static void on_accept(int fd, const struct addr *peer, void *arg)
{
    struct host *host = arg;

    CHECK(host->accepted < GUESTS_MAX);
    host->fds[host->accepted++] = fd;
    host->peer                  = *peer;
    if (host->accepted == host->stop_at)
        listener_watch_stop(&host->watch);
    if (host->accepted == host->wanted)
        loop_break(host->loop);
}

static void on_fault(int number, void *arg)
{
    struct host *host = arg;

    host->faults++;
    host->fault = number;
    loop_break(host->loop);
}

static void host_open(struct host *host)
{
    *host = (struct host){ 0 };
    CHECK(loop_open(&host->loop, NULL) == 0);
    listener_watch_init(&host->watch, host->loop, on_accept, on_fault, host);
}

static void host_close(struct host *host)
{
    listener_watch_stop(&host->watch);
    listener_watch_stop(&host->watch);
    for (unsigned i = 0; i < host->accepted; i++)
        close(host->fds[i]);
    loop_close(host->loop);
}

static void serve(struct host *host, unsigned wanted)
{
    host->wanted = wanted;
    if (host->accepted < wanted)
        loop_run(host->loop);
    CHECK_INT(host->accepted, wanted);
}

static void dial_many(struct listener *listener, int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fds[i] = dial(listener_addr(listener));
}

static void close_many(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

static int option_of(int fd, int level, int option)
{
    int       value = -1;
    socklen_t len   = sizeof(value);

    CHECK(getsockopt(fd, level, option, &value, &len) == 0);
    return value;
}

TEST(accepted_sockets_come_ready_for_the_loop_with_their_peer)
{
    struct listener        *listener = open_local(1);
    struct host             host;
    struct sockaddr_storage sa;
    struct addr             own;
    socklen_t               len = sizeof(sa);
    int                     fd;

    host_open(&host);
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    fd = dial(listener_addr(listener));
    serve(&host, 1);
    CHECK(fcntl(host.fds[0], F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(host.fds[0], F_GETFD) & FD_CLOEXEC);
    CHECK(option_of(host.fds[0], IPPROTO_TCP, TCP_NODELAY) != 0);
    CHECK(getsockname(fd, (struct sockaddr *)&sa, &len) == 0);
    addr_from_sockaddr(&own, (struct sockaddr *)&sa, len);
    CHECK(addr_is_equal(&host.peer, &own));
    close(fd);
    host_close(&host);
    listener_close(listener);
}

TEST(a_full_queue_is_served_over_several_turns)
{
    struct listener *listener = open_local(1);
    struct host      host;
    uint64_t         turns;
    int              fds[150];

    host_open(&host);
    dial_many(listener, fds, 150);
    turns = loop_turns(host.loop);
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    serve(&host, 150);
    CHECK(loop_turns(host.loop) - turns >= 3);
    close_many(fds, 150);
    host_close(&host);
    listener_close(listener);
}

TEST(a_watch_stopped_by_its_callback_takes_no_more_and_another_loop_goes_on)
{
    struct listener *listener = open_local(1);
    struct host      host, neighbour;
    int              fds[10];

    host_open(&host);
    host_open(&neighbour);
    dial_many(listener, fds, 10);
    host.stop_at = 4;
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    serve(&host, 4);
    CHECK(listener_watch_start(&neighbour.watch, listener_fd(listener, 0)) == 0);
    serve(&neighbour, 6);
    CHECK_INT(host.accepted, 4);

    host.stop_at = 0; /* and it may come back */
    listener_watch_stop(&neighbour.watch);
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    fds[9] = (close(fds[9]), dial(listener_addr(listener)));
    serve(&host, 5);
    close_many(fds, 10);
    host_close(&host);
    host_close(&neighbour);
    listener_close(listener);
}

TEST(draining_takes_all_that_waits_without_a_turn)
{
    struct listener *listener = open_local(1);
    struct host      host;
    int              fds[100];

    host_open(&host);
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    dial_many(listener, fds, 100);
    listener_watch_drain(&host.watch);
    CHECK_INT(host.accepted, 100);
    close_many(fds, 100);
    host_close(&host);
    listener_close(listener);
}

/* 0, or the errno with which the kernel answers. */
static int try_dial(const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);
    int                     fd  = socket(at->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int                     number;

    CHECK(fd >= 0);
    number = connect(fd, (struct sockaddr *)&sa, len) == 0 ? 0 : errno;
    close(fd);
    return number;
}

TEST(who_comes_after_the_draining_is_refused_until_the_socket_is_taken_up_again)
{
    struct listener *listener = open_local(1), *next;
    struct addr      at       = *listener_addr(listener);
    int              held     = listener_fd(listener, 0);
    struct host      host;

    host_open(&host);
    CHECK(listener_watch_start(&host.watch, held) == 0);
    listener_watch_drain(&host.watch);
    CHECK_INT(host.watch.fd, -1);
    CHECK_INT(try_dial(&at), ECONNREFUSED);
    CHECK(listener_reopen(&next, &at, &held, 1, 1, NULL) == 0);
    CHECK_INT(try_dial(listener_addr(next)), 0);
    host_close(&host);
    listener_close(next);
    listener_close(listener);
}

static rlim_t set_fds_max(rlim_t max)
{
    struct rlimit limit;
    rlim_t        before;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    before         = limit.rlim_cur;
    limit.rlim_cur = max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return before;
}

TEST(out_of_descriptors_is_told_once_and_accepting_goes_on_when_there_are_some)
{
    struct listener *listener = open_local(1);
    struct host      host;
    rlim_t           before;
    uint64_t         turns;
    int              fds[2];

    host_open(&host);
    dial_many(listener, fds, 2);
    CHECK(listener_watch_start(&host.watch, listener_fd(listener, 0)) == 0);
    before = set_fds_max((rlim_t)fds[1] + 1);
    loop_run(host.loop);
    CHECK_INT(host.fault, EMFILE);
    CHECK_INT(host.accepted, 0);

    set_fds_max(before);
    turns = loop_turns(host.loop);
    serve(&host, 2);
    CHECK_INT(host.faults, 1);
    CHECK(loop_turns(host.loop) - turns < 20); /* it waited, it did not spin */
    close_many(fds, 2);
    host_close(&host);
    listener_close(listener);
}

TEST(a_socket_that_does_not_listen_is_a_fault_and_no_endless_loop)
{
    struct host host;
    int         fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    host_open(&host);
    CHECK(listener_watch_start(&host.watch, fd) == 0);
    listener_watch_drain(&host.watch);
    CHECK_INT(host.fault, EINVAL);
    host_close(&host);
    close(fd);
}

int main(void)
{
    int rc = check_run();

    remove_dir();
    return rc;
}
