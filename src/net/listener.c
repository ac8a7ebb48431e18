#include "net/listener.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

struct listener {
    struct addr at;
    unsigned    count;
    int         fds[];
};

/* --- sockets -------------------------------------------------------------------------------- */

static void set_option(int fd, int level, int option, int value)
{
    int rc = setsockopt(fd, level, option, &value, sizeof(value));

    assert(rc == 0); /* none of ours can fail on a fresh socket of its kind */
    (void)rc;
}

static int bind_and_listen(int fd, const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);

    if (bind(fd, (struct sockaddr *)&sa, len) < 0)
        return -1;
    return listen(fd, LISTENER_BACKLOG);
}

static int refuse(struct err *err, const struct addr *at)
{
    char text[ADDR_TEXT_BYTES];

    return err_set_errno(err, "cannot listen on %s", addr_format(at, text));
}

/* Returns the descriptor or -1 with errno. Accepted sockets inherit TCP_NODELAY. */
static int open_socket(const struct addr *at, bool sibling)
{
    int fd = socket(at->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int number;

    if (fd < 0)
        return -1;
    if (at->family != AF_UNIX) {
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* in spite of old connections' TIME_WAIT */
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    }
    if (at->family == AF_INET6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (sibling)
        set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (bind_and_listen(fd, at) == 0)
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

static void read_port(struct listener *listener)
{
    struct sockaddr_storage sa;
    struct addr             bound;
    socklen_t               len = sizeof(sa);

    if (getsockname(listener->fds[0], (struct sockaddr *)&sa, &len) == 0) {
        addr_from_sockaddr(&bound, (struct sockaddr *)&sa, len);
        listener->at.port = bound.port;
    }
}

static int open_siblings(struct listener *listener, unsigned slots, struct err *err)
{
    while (listener->count < slots) {
        int fd = open_socket(&listener->at, true);

        if (fd < 0)
            return refuse(err, &listener->at);
        listener->fds[listener->count++] = fd;
    }
    return 0;
}

/* The first socket binds and listens without SO_REUSEPORT: with it, a second server of the same
 * user would join in silence instead of failing. Once it has the option, siblings may join. */
static int open_tcp(struct listener *listener, unsigned slots, struct err *err)
{
    listener->fds[0] = open_socket(&listener->at, false);
    if (listener->fds[0] < 0)
        return refuse(err, &listener->at);
    listener->count = 1;
    read_port(listener);
    set_option(listener->fds[0], SOL_SOCKET, SO_REUSEPORT, 1);
    return open_siblings(listener, slots, err);
}

/* --- Unix paths ----------------------------------------------------------------------------- */

static bool has_file(const struct addr *at)
{
    return at->family == AF_UNIX && at->at.path[0] != '@';
}

/* 0 when somebody answers (a full queue is an answer), else -1 with errno. */
static int knock(const struct addr *at)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(at, &sa);
    int                     fd  = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int                     rc, number;

    if (fd < 0)
        return -1;
    rc     = connect(fd, (struct sockaddr *)&sa, len);
    number = errno;
    close(fd);
    errno = number;
    return rc < 0 && number == EAGAIN ? 0 : rc;
}

/* A server that was killed leaves its socket file, which would stand in the way for ever. */
static int clear_path(const struct addr *at, struct err *err)
{
    struct stat found;

    if (lstat(at->at.path, &found) < 0)
        return errno == ENOENT ? 0 : refuse(err, at);
    if (!S_ISSOCK(found.st_mode))
        return err_set(err, ERR_EXISTS,
                       "cannot listen on unix:%s: a file that is no socket is there", at->at.path);
    if (knock(at) == 0)
        return err_set(err, ERR_IN_USE, "cannot listen on unix:%s: another server does",
                       at->at.path);
    if (errno == ENOENT)
        return 0;
    if (errno != ECONNREFUSED || unlink(at->at.path) < 0)
        return refuse(err, at);
    return 0;
}

static int open_unix(struct listener *listener, struct err *err)
{
    int rc = has_file(&listener->at) ? clear_path(&listener->at, err) : 0;

    if (rc < 0)
        return rc;
    listener->fds[0] = open_socket(&listener->at, false);
    if (listener->fds[0] < 0)
        return refuse(err, &listener->at);
    listener->count = 1;
    return 0;
}

/* --- a listener's life ---------------------------------------------------------------------- */

static struct listener *new_listener(const struct addr *at, unsigned slots, struct err *err)
{
    struct listener *listener = calloc(1, sizeof(*listener) + slots * sizeof(listener->fds[0]));

    assert(slots > 0);
    if (listener)
        listener->at = *at;
    else
        err_set(err, ERR_MEMORY, "no memory for %u listening sockets", slots);
    return listener;
}

static int finish_open(struct listener **out, struct listener *listener, int rc)
{
    if (rc < 0)
        listener_close(listener);
    else
        *out = listener;
    return rc;
}

int listener_open(struct listener **out, const struct addr *at, unsigned slots, struct err *err)
{
    struct listener *listener = new_listener(at, slots, err);

    if (!listener)
        return ERR_MEMORY;
    return finish_open(out, listener,
                       at->family == AF_UNIX ? open_unix(listener, err)
                                             : open_tcp(listener, slots, err));
}

static int take_duplicates(struct listener *listener, const int *held, unsigned count,
                           struct err *err)
{
    while (listener->count < count) {
        int fd = fcntl(held[listener->count], F_DUPFD_CLOEXEC, 0);

        if (fd < 0)
            return refuse(err, &listener->at);
        listener->fds[listener->count++] = fd;
        if (listen(fd, LISTENER_BACKLOG) < 0) /* it may have been drained */
            return refuse(err, &listener->at);
    }
    return 0;
}

/* Siblings are for the user alone who opened the first, and for a low port he must be root. Where
 * none can be had the slots share what there is, as those of a Unix path do. */
int listener_reopen(struct listener **out, const struct addr *at, const int *held,
                    unsigned held_count, unsigned slots, struct err *err)
{
    struct listener *listener = new_listener(at, slots, err);
    int              rc;

    assert(held_count > 0);
    if (!listener)
        return ERR_MEMORY;
    rc = take_duplicates(listener, held, held_count < slots ? held_count : slots, err);
    if (rc == 0 && at->family != AF_UNIX) {
        read_port(listener);
        open_siblings(listener, slots, NULL);
    }
    return finish_open(out, listener, rc);
}

void listener_close(struct listener *listener)
{
    if (!listener)
        return;
    for (unsigned i = 0; i < listener->count; i++)
        close(listener->fds[i]);
    free(listener);
}

/* Asking who answers is surer than comparing files: inode numbers are used again at once. */
void listener_withdraw(struct listener *listener)
{
    struct addr at;

    if (!listener)
        return;
    at = listener->at;
    listener_close(listener);
    if (has_file(&at) && knock(&at) < 0 && errno == ECONNREFUSED)
        unlink(at.at.path);
}

const struct addr *listener_addr(const struct listener *listener)
{
    return &listener->at;
}

int listener_fd(const struct listener *listener, unsigned slot)
{
    return listener->fds[slot % listener->count];
}

/* --- watching ------------------------------------------------------------------------------- */

/* The socket stays readable while it cannot be served: without a pause the loop would spin. */
static void pause_watch(struct listener_watch *watch, int number)
{
    io_stop(&watch->io);
    timer_start(&watch->pause, watch->loop, LISTENER_PAUSE_MS);
    if (!watch->faulty && watch->on_fault)
        watch->on_fault(number, watch->arg);
    watch->faulty = true;
}

/* A connection that ended in the queue, or one whose network failed, says nothing of the next
 * (accept(2): "treat them like EAGAIN"). */
static bool is_fault_of_one(int number)
{
    switch (number) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
    }
}

/* False: nothing waits, or nothing can be taken now. */
static bool accept_one(struct listener_watch *watch)
{
    struct sockaddr_storage sa;
    struct addr             peer;
    socklen_t               len = sizeof(sa);
    int fd = accept4(watch->fd, (struct sockaddr *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        watch->faulty = false;
        addr_from_sockaddr(&peer, (struct sockaddr *)&sa, len);
        watch->on_accept(fd, &peer, watch->arg);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    if (is_fault_of_one(errno))
        return true;
    pause_watch(watch, errno);
    return false;
}

static void accept_up_to(struct listener_watch *watch, unsigned max)
{
    for (unsigned i = 0; i < max && watch->fd >= 0; i++)
        if (!accept_one(watch))
            return;
}

static void on_readable(int fd, short what, void *arg)
{
    accept_up_to(arg, LISTENER_ACCEPTS_PER_TURN);
}

static void on_pause_over(struct timer *timer)
{
    struct listener_watch *watch = container_of(timer, struct listener_watch, pause);

    if (io_start_level(&watch->io, watch->loop, watch->fd, on_readable, watch) < 0)
        pause_watch(watch, errno);
}

void listener_watch_init(struct listener_watch *watch, struct loop *loop, accept_fn on_accept,
                         accept_fault_fn on_fault, void *arg)
{
    *watch = (struct listener_watch){
        .loop      = loop,
        .on_accept = on_accept,
        .on_fault  = on_fault,
        .arg       = arg,
        .fd        = -1,
    };
    timer_init(&watch->pause, on_pause_over);
}

int listener_watch_start(struct listener_watch *watch, int fd)
{
    assert(watch->fd < 0);
    if (io_start_level(&watch->io, watch->loop, fd, on_readable, watch) < 0)
        return ERR_SYSTEM;
    watch->fd = fd;
    return 0;
}

void listener_watch_stop(struct listener_watch *watch)
{
    io_stop(&watch->io);
    timer_stop(&watch->pause, watch->loop);
    watch->fd = -1;
}

void listener_watch_drain(struct listener_watch *watch)
{
    int fd = watch->fd;

    accept_up_to(watch, LISTENER_BACKLOG);
    shutdown(fd, SHUT_RD);
    listener_watch_stop(watch);
}
