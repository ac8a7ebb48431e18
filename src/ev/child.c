#include "ev/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "ev/loop.h"
#include "ev/timer.h"

enum { LAST_WAIT_MS = 1000 }; /* for one that was killed, at the end of the loop */

struct children {
    struct loop *loop;
    struct list  all;
    unsigned     count;
};

struct child {
    struct list      link; /* in children->all */
    struct children *children;
    pid_t            pid;
    int              pidfd;
    struct io        io; /* the pidfd becomes readable at its exit */
    struct timer     grace;
    child_exit_fn    on_exit; /* NULL: nobody asks, it is being ended */
    void            *arg;
    bool             has_exited;
    int              status;
};

/* --- pipes ----------------------------------------------------------------------------------------- */

struct pipes {
    int ours[3], its[3];
};

static void close_all(int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Descriptors below 3 would be in the way of those that the child gets. */
static int lift(int *fd)
{
    int higher;

    if (*fd > 2)
        return 0;
    higher = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (higher < 0)
        return -1;
    close(*fd);
    *fd = higher;
    return 0;
}

/* Which of a pipe's ends is ours: we write into 0, and read from 1 and 2. */
static int open_pipe(struct pipes *pipes, int number)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    pipes->ours[number] = fds[number == 0];
    pipes->its[number]  = fds[number != 0];
    if (lift(&pipes->ours[number]) != 0 || lift(&pipes->its[number]) != 0)
        return -1;
    return fcntl(pipes->ours[number], F_SETFL, O_NONBLOCK);
}

static int open_pipes(struct pipes *pipes, bool has_input)
{
    for (int i = has_input ? 0 : 1; i < 3; i++)
        if (open_pipe(pipes, i) != 0)
            return -1;
    return 0;
}

/* --- spawning --------------------------------------------------------------------------------------- */

static int plan_files(posix_spawn_file_actions_t *files, const struct child_spec *spec,
                      const struct pipes *pipes)
{
    int rc = 0;

    if (!spec->has_input)
        rc = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    for (int i = 0; i < 3 && rc == 0; i++)
        if (pipes->its[i] >= 0)
            rc = posix_spawn_file_actions_adddup2(files, pipes->its[i], i);
    /* ours are all close-on-exec; those of an app's libraries may not be */
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(files, 3);
    if (rc == 0 && spec->cwd)
        rc = posix_spawn_file_actions_addchdir_np(files, spec->cwd);
    return rc;
}

/* Our threads block signals, and SIGPIPE is ignored: both would be inherited. */
static void plan_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

/* glibc's is a vfork() that stops the calling thread alone. 0, or errno's number. */
static int spawn(const struct child_spec *spec, const struct pipes *pipes, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    int                        rc = posix_spawn_file_actions_init(&files);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        plan_attributes(&attributes);
        rc = plan_files(&files, spec, pipes);
        if (rc == 0)
            rc = posix_spawnp(pid, spec->argv[0], &files, &attributes, spec->argv, spec->envp);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int tell_why(const struct child_spec *spec, int number, struct err *err)
{
    const char *program = spec->argv[0];

    if (spec->cwd && (number == ENOENT || number == ENOTDIR) && !is_folder(spec->cwd))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such folder to run %s in", spec->cwd,
                       program);
    if (number == ENOENT && !strchr(program, '/'))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such program in $PATH", program);
    if (number == EACCES || number == EPERM)
        return err_set(err, ERR_DENIED, "%s: %s", program, strerror(number));
    errno = number;
    return err_set_errno(err, "%s", program);
}

static void kill_and_reap(pid_t pid)
{
    siginfo_t info;

    kill(-pid, SIGKILL);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR)
        ;
}

int child_spawn(const struct child_spec *spec, struct child_start *out, struct err *err)
{
    struct pipes pipes = { { -1, -1, -1 }, { -1, -1, -1 } };
    int          rc    = open_pipes(&pipes, spec->has_input) == 0 ? 0 : errno;

    *out = (struct child_start){ .pidfd = -1, .ends = { -1, -1, -1 } };
    if (rc == 0)
        rc = spawn(spec, &pipes, &out->pid);
    close_all(pipes.its);
    if (rc == 0 && (out->pidfd = pidfd_open(out->pid, 0)) < 0) {
        rc = errno;
        kill_and_reap(out->pid);
    }
    if (rc != 0) {
        close_all(pipes.ours);
        out->pid = 0;
        return tell_why(spec, rc, err);
    }
    memcpy(out->ends, pipes.ours, sizeof(out->ends));
    return 0;
}

void child_discard(struct child_start *start)
{
    if (start->pid == 0)
        return;
    kill_and_reap(start->pid);
    close(start->pidfd);
    close_all(start->ends);
    start->pid = 0;
}

/* --- on the loop ------------------------------------------------------------------------------------- */

/* A pipe that nobody reads is an error to be told, not our end. Who has started us may have had SIGCHLD
 * ignored, and then the kernel reaps before we look. */
static void take_signals(void)
{
    struct sigaction now;

    signal(SIGPIPE, SIG_IGN);
    if (sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
}

int children_open(struct children **out, struct loop *loop, struct err *err)
{
    struct children *children = calloc(1, sizeof(*children));

    if (!children)
        return err_set(err, ERR_MEMORY, "no memory for child processes");
    children->loop = loop;
    list_init(&children->all);
    take_signals();
    *out = children;
    return 0;
}

bool children_is_full(const struct children *children)
{
    return children->count >= CHILDREN_MAX;
}

static void forget(struct child *child)
{
    siginfo_t info;

    io_stop(&child->io);
    timer_stop(&child->grace, child->children->loop);
    waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG);
    close(child->pidfd);
    list_remove(&child->link);
    child->children->count--;
    free(child);
}

/* It remains a zombie. */
static bool look(struct child *child)
{
    siginfo_t info = { 0 };

    if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0)
        return false;
    child->has_exited = true;
    child->status     = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    return true;
}

static void on_pidfd(int fd, short what, void *arg)
{
    struct child *child = arg;

    if (child->has_exited || !look(child))
        return;
    io_stop(&child->io);
    if (child->on_exit) {
        child->on_exit(child, child->arg);
        return;
    }
    kill(-child->pid, SIGKILL); /* its own children have had the same warning */
    forget(child);
}

static void on_grace_over(struct timer *timer)
{
    struct child *child = container_of(timer, struct child, grace);

    kill(-child->pid, SIGKILL);
}

struct child *child_adopt(struct children *children, struct child_start *start,
                          child_exit_fn on_exit, void *arg)
{
    struct child *child = calloc(1, sizeof(*child));

    if (!child || io_start_level(&child->io, children->loop, start->pidfd, on_pidfd, child) != 0) {
        free(child);
        child_discard(start);
        return NULL;
    }
    child->children = children;
    child->pid      = start->pid;
    child->pidfd    = start->pidfd;
    child->on_exit  = on_exit;
    child->arg      = arg;
    timer_init(&child->grace, on_grace_over);
    list_append(&children->all, &child->link);
    children->count++;
    start->pid = 0;
    return child;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

bool child_has_exited(const struct child *child)
{
    return child->has_exited;
}

int child_status(const struct child *child)
{
    assert(child->has_exited);
    return child->status;
}

bool child_signal(struct child *child, int number)
{
    return kill(-child->pid, number) == 0;
}

void child_reap(struct child *child)
{
    assert(child->has_exited);
    forget(child);
}

void child_end(struct child *child)
{
    child->on_exit = NULL;
    if (child->has_exited) {
        kill(-child->pid, SIGKILL);
        forget(child);
        return;
    }
    kill(-child->pid, SIGTERM);
    kill(-child->pid, SIGCONT); /* a stopped one would not hear it */
    timer_start(&child->grace, child->children->loop, CHILD_GRACE_MS);
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void kill_now(struct child *child)
{
    struct pollfd gone = { .fd = child->pidfd, .events = POLLIN };

    kill(-child->pid, SIGKILL);
    poll(&gone, 1, LAST_WAIT_MS);
    forget(child);
}

void children_close(struct children *children)
{
    struct list *node;

    if (!children)
        return;
    list_each(each, &children->all) kill(-container_of(each, struct child, link)->pid, SIGKILL);
    while ((node = list_take_first(&children->all)))
        kill_now(container_of(node, struct child, link));
    free(children);
}
