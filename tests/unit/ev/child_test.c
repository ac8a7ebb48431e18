#include "ev/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop     *loop;
static struct children *children;

static void open_all(void)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
    CHECK(children_open(&children, loop, &err) == 0);
}

static void close_all(void)
{
    children_close(children);
    loop_close(loop);
}

static void spawn(struct child_start *start, const char *script)
{
    char             *argv[] = { "sh", "-c", (char *)script, NULL };
    struct child_spec spec   = { .argv = argv, .envp = environ, .has_input = true };
    struct err        err;

    CHECK_INT(child_spawn(&spec, start, &err), 0);
}

static void close_ends(struct child_start *start)
{
    for (int i = 0; i < 3; i++)
        close(start->ends[i]);
}

/* All that comes from FD until its end. */
static size_t read_all(int fd, char *to, size_t room)
{
    size_t len = 0;

    for (;;) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        ssize_t       n;

        CHECK(poll(&ready, 1, 20000) == 1);
        n = read(fd, to + len, room - len);
        if (n <= 0)
            return len;
        len += (size_t)n;
    }
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* A grandchild is reaped by init, in its own time. */
static void await_end_of(pid_t pid)
{
    for (int i = 0; i < 2000 && is_alive(pid); i++)
        usleep(5000);
    CHECK(!is_alive(pid));
}

static void stop_loop(struct child *child, void *arg)
{
    *(int *)arg = child_status(child);
    loop_break(loop);
}

static unsigned count_descriptors(void)
{
    DIR     *folder = opendir("/proc/self/fd");
    unsigned count  = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

TEST(a_child_says_what_it_has_to_say_and_how_it_ended)
{
    struct child_start start;
    struct child      *child;
    char               text[64];
    int                status = 99;

    open_all();
    spawn(&start, "read line; echo \"<$line>\"; echo oops >&2; exit 7");
    CHECK(write(start.ends[0], "hello\n", 6) == 6);
    CHECK_MEM(text, read_all(start.ends[1], text, sizeof(text)), "<hello>\n", 8);
    CHECK_MEM(text, read_all(start.ends[2], text, sizeof(text)), "oops\n", 5);
    close_ends(&start);
    child = child_adopt(children, &start, stop_loop, &status);
    CHECK(child != NULL);
    loop_run(loop);
    CHECK_INT(status, 7);
    CHECK(child_has_exited(child));
    CHECK(is_alive(child_pid(child))); /* a zombie, so that its number is nobody else's */
    child_reap(child);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    close_all();
}

TEST(a_signal_is_a_negative_status)
{
    struct child_start start;
    struct child      *child;
    int                status = 99;

    open_all();
    spawn(&start, "kill -9 $$");
    close_ends(&start);
    child = child_adopt(children, &start, stop_loop, &status);
    loop_run(loop);
    CHECK_INT(status, -SIGKILL);
    child_reap(child);
    close_all();
}

TEST(what_cannot_be_started_is_an_error)
{
    char              *none[] = { "no-such-program-here", NULL };
    char              *file[] = { "/etc/passwd", NULL };
    char              *sh[]   = { "sh", NULL };
    struct child_spec  spec   = { .argv = none, .envp = environ };
    unsigned           before = count_descriptors();
    struct child_start start;
    struct err         err;

    CHECK_INT(child_spawn(&spec, &start, &err), ERR_NOT_FOUND);
    CHECK_STR(err.text, "no-such-program-here: there is no such program in $PATH");
    spec.argv = file;
    CHECK_INT(child_spawn(&spec, &start, &err), ERR_DENIED);
    spec.argv = sh;
    spec.cwd  = "/no/such/folder";
    CHECK_INT(child_spawn(&spec, &start, &err), ERR_NOT_FOUND);
    CHECK_STR(err.text, "/no/such/folder: there is no such folder to run sh in");
    CHECK_INT(start.pid, 0);
    CHECK_INT(count_descriptors(), before);
}

/* Signals are blocked in our threads, SIGPIPE is ignored, a descriptor lies about that is not
 * close-on-exec. Number 3 is the folder that ls reads. */
TEST(a_child_inherits_neither_signals_nor_descriptors)
{
    struct child_start start;
    sigset_t           all, old;
    char               text[4096];
    size_t             len;
    int                stray = open("/dev/null", O_RDONLY);

    signal(SIGPIPE, SIG_IGN);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    spawn(&start, "sed -nE 's/^(Sig(Blk|Ign)).*(.{7})$/\\1 \\3/p' /proc/self/status; "
                  "exec ls /proc/self/fd");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    len       = read_all(start.ends[1], text, sizeof(text) - 1);
    text[len] = 0;
    CHECK_STR(text, "SigBlk 0000000\nSigIgn 0000000\n0\n1\n2\n3\n");
    child_discard(&start);
    close(stray);
}

TEST(an_end_reaches_those_that_the_child_has_started)
{
    struct child_start start;
    struct child      *child;
    char               text[32];
    pid_t              grandchild;
    ssize_t            len;
    int                status = 99;
    struct pollfd      ready;

    open_all();
    spawn(&start, "sleep 100 & echo $!; wait");
    ready = (struct pollfd){ .fd = start.ends[1], .events = POLLIN };
    CHECK(poll(&ready, 1, 20000) == 1);
    len = read(start.ends[1], text, sizeof(text) - 1);
    CHECK(len > 0);
    text[len]  = 0;
    grandchild = (pid_t)atoi(text);
    CHECK(is_alive(grandchild));
    close_ends(&start);
    child = child_adopt(children, &start, stop_loop, &status);
    child_signal(child, SIGTERM);
    loop_run(loop);
    CHECK_INT(status, -SIGTERM);
    await_end_of(grandchild);
    child_reap(child);
    close_all();
}

static pid_t awaited;

static void break_when_gone(struct loop_hook *hook)
{
    if (!is_alive(awaited))
        loop_break(loop);
}

TEST(one_that_does_not_hear_is_killed)
{
    struct child_start start;
    struct child      *child;
    struct loop_hook   hook;
    char               text[8];

    open_all();
    spawn(&start, "trap '' TERM; echo; while :; do sleep 1; done");
    CHECK(poll(&(struct pollfd){ .fd = start.ends[1], .events = POLLIN }, 1, 20000) == 1);
    CHECK(read(start.ends[1], text, sizeof(text)) == 1); /* it has closed its ears */
    close_ends(&start);
    child   = child_adopt(children, &start, NULL, NULL);
    awaited = child_pid(child);
    child_end(child);
    loop_hook_init(&hook, break_when_gone);
    loop_on_idle(loop, &hook);
    loop_run(loop);
    loop_hook_remove(&hook);
    close_all();
}

TEST(the_loop_s_end_is_that_of_its_children)
{
    struct child_start start;
    pid_t              numbers[20];

    open_all();
    for (int i = 0; i < 20; i++) {
        spawn(&start, i % 2 ? "trap '' TERM; sleep 100" : "exit 0");
        close_ends(&start);
        numbers[i] = start.pid;
        CHECK(child_adopt(children, &start, NULL, NULL) != NULL);
    }
    close_all();
    for (int i = 0; i < 20; i++)
        CHECK(!is_alive(numbers[i]));
}

TEST(a_thousand_leave_nothing_behind)
{
    unsigned before = count_descriptors();

    for (int i = 0; i < 1000; i++) {
        char              *argv[] = { "true", NULL };
        struct child_spec  spec   = { .argv = argv, .envp = environ };
        struct child_start start;
        struct err         err;

        CHECK_INT(child_spawn(&spec, &start, &err), 0);
        child_discard(&start);
    }
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    CHECK_INT(count_descriptors(), before);
}

int main(void)
{
    return check_run();
}
