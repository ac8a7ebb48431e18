#include "server/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "server/account.h"

enum {
    BACKOFF_FIRST_MS = 20,
    BACKOFF_MAX_MS   = 5000,
    STABLE_MS        = 10000, /* a server that lived this long starts the back-off anew */
};

enum message_kind { MESSAGE_HOLD = 1, MESSAGE_FOLLOW, MESSAGE_READY };

struct control_message {
    enum message_kind kind;
    char              text[128]; /* HOLD: the address; FOLLOW: the user */
    unsigned          slot;
};

struct supervisor {
    supervisor_child_fn    child;
    void                  *arg;
    struct supervisor_link link; /* what the next server is given */
    int                    signal_fd;
    int                    control_fd; /* our end */
    int                    pid_fd;
    pid_t                  own_pid, pid;
    uint64_t               started_ms;
    unsigned               backoff_ms;
    bool                   ready;  /* the running server has said so */
    bool                   served; /* one has: from then on the port is kept in service */
    bool                   ending; /* a signal to end was passed on */
};

static uint64_t now_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

/* --- the server's end ------------------------------------------------------------------------ */

int supervisor_held(const struct supervisor_link *link, const char *address, unsigned slot)
{
    for (unsigned i = 0; i < link->held_count; i++)
        if (link->held[i].slot == slot && strcmp(link->held[i].address, address) == 0)
            return link->held[i].fd;
    return -1;
}

static int send_message(int control_fd, const struct control_message *message, int fd)
{
    char          space[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec  iov                            = { (void *)message, sizeof(*message) };
    struct msghdr head                           = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        struct cmsghdr *rights;

        head.msg_control    = space;
        head.msg_controllen = sizeof(space);
        rights              = CMSG_FIRSTHDR(&head);
        rights->cmsg_level  = SOL_SOCKET;
        rights->cmsg_type   = SCM_RIGHTS;
        rights->cmsg_len    = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    }
    return sendmsg(control_fd, &head, MSG_NOSIGNAL) == (ssize_t)sizeof(*message) ? 0 : -1;
}

int supervisor_hold(struct supervisor_link *link, const char *address, unsigned slot, int fd,
                    struct err *err)
{
    struct control_message message = { .kind = MESSAGE_HOLD, .slot = slot };

    if (link->control_fd < 0)
        return 0;
    snprintf(message.text, sizeof(message.text), "%s", address);
    if (send_message(link->control_fd, &message, fd) != 0)
        return err_set_errno(err, "cannot hand the listener %s to the supervisor", address);
    return 0;
}

/* A server without its supervisor would hold the port against the next start. */
static bool die_with(pid_t supervisor)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == supervisor; /* it may have gone before the line above */
}

int supervisor_follow(struct supervisor_link *link, const char *user, struct err *err)
{
    struct control_message message = { .kind = MESSAGE_FOLLOW };

    if (link->control_fd < 0)
        return 0;
    /* The kernel has forgotten it together with root. */
    if (!die_with(link->supervisor))
        return err_set(err, ERR_CLOSED, "the supervisor has gone");
    snprintf(message.text, sizeof(message.text), "%s", user);
    if (send_message(link->control_fd, &message, -1) != 0)
        return err_set_errno(err, "cannot tell the supervisor");
    return 0;
}

void supervisor_ready(struct supervisor_link *link)
{
    struct control_message message = { .kind = MESSAGE_READY };

    if (link->control_fd >= 0)
        send_message(link->control_fd, &message, -1);
}

/* --- the supervisor -------------------------------------------------------------------------- */

static void say(const char *what, const char *detail)
{
    fprintf(stderr, "srv supervisor: %s%s\n", what, detail);
}

static void keep_socket(struct supervisor *s, const struct control_message *message, int fd)
{
    struct held_socket *held = &s->link.held[s->link.held_count];

    if (fd < 0)
        return;
    if (s->link.held_count == SUPERVISOR_HELD_MAX ||
        supervisor_held(&s->link, message->text, message->slot) >= 0) {
        close(fd);
        return;
    }
    snprintf(held->address, sizeof(held->address), "%.127s", message->text);
    held->slot = message->slot;
    held->fd   = fd;
    s->link.held_count++;
}

/* Once it is not root any more, this is nothing new. */
static void follow(struct supervisor *s, const char *user)
{
    struct account account;
    struct err     err = { 0 };

    if (geteuid() != 0)
        return;
    if (account_find(&account, user, &err) == 0 && account_become(&account, &err) == 0)
        return;
    say("cannot go on: ", err.text);
    s->ending = true;
    kill(s->pid, SIGKILL);
}

static void on_message(struct supervisor *s, const struct control_message *message, int fd)
{
    switch (message->kind) {
    case MESSAGE_HOLD: keep_socket(s, message, fd); return;
    case MESSAGE_FOLLOW: follow(s, message->text); return;
    case MESSAGE_READY: s->ready = s->served = true; return;
    }
}

/* True while there was one. */
static bool receive_message(struct supervisor *s)
{
    char                   space[CMSG_SPACE(sizeof(int))];
    struct control_message message;
    struct iovec           iov  = { &message, sizeof(message) };
    struct msghdr          head = {
                 .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)
    };
    struct cmsghdr *rights;
    int             fd = -1;

    if (recvmsg(s->control_fd, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(message))
        return false;
    rights = CMSG_FIRSTHDR(&head);
    if (rights && rights->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(rights), sizeof(int));
    message.text[sizeof(message.text) - 1] = '\0';
    on_message(s, &message, fd);
    return true;
}

/* In the child: only what the server needs is kept. */
static _Noreturn void become_server(struct supervisor *s, int control_fd)
{
    close(s->signal_fd);
    close(s->control_fd);
    if (s->pid_fd >= 0)
        close(s->pid_fd);
    if (!die_with(s->own_pid))
        _exit(1);
    s->link.control_fd = control_fd;
    s->link.supervisor = s->own_pid;
    exit(s->child(&s->link, s->arg));
}

static int start_server(struct supervisor *s)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    s->control_fd = pair[0];
    s->pid_fd     = -1;
    s->ready      = false;
    s->started_ms = now_ms();
    atomic_store(&s->link.last_words->signal, 0);
    s->link.last_words->route[0] = '\0';
    s->pid                       = fork();
    if (s->pid == 0)
        become_server(s, pair[1]);
    close(pair[1]);
    if (s->pid < 0)
        return -1;
    s->pid_fd = pidfd_open(s->pid, 0);
    return s->pid_fd < 0 ? -1 : 0;
}

/* The first signal drains; the second ends at once. */
static void pass_on(struct supervisor *s, int signal)
{
    bool ends = signal == SIGTERM || signal == SIGINT;

    if (!ends) {
        kill(s->pid, signal);
        return;
    }
    kill(s->pid, s->ending ? SIGKILL : SIGTERM);
    s->ending = true;
}

static void read_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        pass_on(s, (int)info.ssi_signo);
}

/* Waits until the server has ended; its wait status. */
static int watch_server(struct supervisor *s)
{
    struct pollfd fds[]  = { { s->signal_fd, POLLIN, 0 },
                             { s->control_fd, POLLIN, 0 },
                             { s->pid_fd, POLLIN, 0 } };
    int           status = 0;

    for (;;) {
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            read_signals(s);
        while ((fds[1].revents & POLLIN) && receive_message(s))
            ;
        if (fds[1].revents & (POLLHUP | POLLERR))
            fds[1].fd = -1;
        if (fds[2].revents)
            break;
    }
    while (receive_message(s))
        ;
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(s->pid_fd);
    close(s->control_fd);
    return status;
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void report_crash(const struct supervisor *s, int status)
{
    const struct last_words *words = s->link.last_words;
    char                     detail[SUPERVISOR_ROUTE_MAX + 64];

    snprintf(detail, sizeof(detail), " %s=%d%s%s%s restart=%u",
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             words->route[0] ? " route=\"" : "", words->route, words->route[0] ? "\"" : "",
             s->link.restarts + 1);
    say(s->ready ? "the server crashed, starting it again"
                 : "the server did not start, trying again",
        detail);
}

/* A server that never served has said why, and one that served ends when it likes. But once the
 * port was in service it stays so: a crash, also one while it starts again, or an app that was
 * broken on the disk meanwhile, is tried again until somebody ends it. */
static bool is_the_end(const struct supervisor *s, int status)
{
    return s->ending || !s->served || (s->ready && WIFEXITED(status));
}

/* Signals that end cut the pause short. */
static void pause_before_restart(struct supervisor *s)
{
    struct pollfd fd = { s->signal_fd, POLLIN, 0 };

    if (now_ms() - s->started_ms > STABLE_MS)
        s->backoff_ms = BACKOFF_FIRST_MS;
    s->pid = -1;
    if (poll(&fd, 1, (int)s->backoff_ms) > 0) {
        struct signalfd_siginfo info;

        while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
            s->ending |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
    }
    s->backoff_ms = s->backoff_ms * 2 < BACKOFF_MAX_MS ? s->backoff_ms * 2 : BACKOFF_MAX_MS;
}

static int open_signals(void)
{
    sigset_t passed;

    sigemptyset(&passed);
    sigaddset(&passed, SIGTERM);
    sigaddset(&passed, SIGINT);
    sigaddset(&passed, SIGHUP);
    sigaddset(&passed, SIGUSR1);
    sigprocmask(SIG_BLOCK, &passed, NULL);
    return signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK);
}

static struct last_words *map_last_words(void)
{
    void *page = mmap(NULL, sizeof(struct last_words), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? NULL : page;
}

/* The file of a Unix socket goes with the last process that holds it: this one. */
static void remove_paths(const struct supervisor *s)
{
    for (unsigned i = 0; i < s->link.held_count; i++)
        if (strncmp(s->link.held[i].address, "unix:/", 6) == 0)
            unlink(s->link.held[i].address + 5);
}

static int end_supervisor(const struct supervisor *s, int status)
{
    remove_paths(s);
    return status;
}

int supervisor_run(supervisor_child_fn child, void *arg)
{
    struct supervisor s = {
        .child = child, .arg = arg, .own_pid = getpid(), .backoff_ms = BACKOFF_FIRST_MS
    };

    s.link.last_words = map_last_words();
    s.signal_fd       = open_signals();
    if (!s.link.last_words || s.signal_fd < 0) {
        say("cannot start: ", strerror(errno));
        return 1;
    }
    for (;;) {
        int status;

        if (start_server(&s) != 0) {
            say("cannot start the server: ", strerror(errno));
            return 1;
        }
        status = watch_server(&s);
        if (is_the_end(&s, status))
            return end_supervisor(&s, exit_status(status));
        report_crash(&s, status);
        pause_before_restart(&s);
        if (s.ending)
            return end_supervisor(&s, 0);
        s.link.restarts++;
    }
}

int supervisor_run_single(supervisor_child_fn child, void *arg)
{
    struct supervisor_link *link = calloc(1, sizeof(*link));
    int                     status;

    if (!link || !(link->last_words = map_last_words())) {
        free(link);
        say("out of memory", "");
        return 1;
    }
    link->control_fd = -1;
    status           = child(link, arg);
    munmap(link->last_words, sizeof(*link->last_words));
    free(link);
    return status;
}
