#include "ev/thread.h"

#include <signal.h>

#include "base/err.h"
#include "support/check.h"

struct report {
    char     name[16];
    sigset_t blocked;
    size_t   stack_bytes;
};

static void fill_report(void *arg)
{
    struct report *report = arg;
    pthread_attr_t attr;

    pthread_getname_np(pthread_self(), report->name, sizeof(report->name));
    pthread_sigmask(SIG_SETMASK, NULL, &report->blocked);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &report->stack_bytes);
    pthread_attr_destroy(&attr);
}

static void get_report(struct report *report, const char *name, size_t stack_bytes)
{
    struct thread thread;
    struct err    err;

    CHECK(thread_start(&thread, name, stack_bytes, fill_report, report, &err) == 0);
    thread_join(&thread);
}

TEST(a_thread_bears_its_name_cut_to_what_the_kernel_keeps)
{
    struct report report;

    get_report(&report, "worker-1", 0);
    CHECK_STR(report.name, "worker-1");
    get_report(&report, "a-name-that-is-too-long", 0);
    CHECK_STR(report.name, "a-name-that-is-");
}

static void wait_to_be_let_go(void *arg)
{
    sem_wait(arg);
}

TEST(joining_within_a_time_gives_up_on_a_thread_that_goes_on)
{
    struct thread thread;
    struct err    err;
    sem_t         go;

    sem_init(&go, 0, 0);
    CHECK(thread_start(&thread, "busy", 0, wait_to_be_let_go, &go, &err) == 0);
    CHECK(!thread_join_within(&thread, 1));
    sem_post(&go);
    CHECK(thread_join_within(&thread, 60000));
    sem_destroy(&go);
}

TEST(a_thread_blocks_all_but_urgent_and_faults_and_the_starter_keeps_its_mask)
{
    struct report report;
    sigset_t      before, after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    get_report(&report, "masked", 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK(sigismember(&report.blocked, SIGTERM) && sigismember(&report.blocked, SIGINT));
    CHECK(sigismember(&report.blocked, SIGPIPE) && sigismember(&report.blocked, SIGUSR1));
    CHECK(!sigismember(&report.blocked, SIGURG));
    CHECK(!sigismember(&report.blocked, SIGSEGV));
    CHECK(!sigismember(&report.blocked, SIGABRT));
    CHECK_INT(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(the_main_thread_blocks_the_same_when_asked_to)
{
    sigset_t before, after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    thread_block_signals();
    pthread_sigmask(SIG_SETMASK, &before, &after);
    CHECK(sigismember(&after, SIGTERM) && sigismember(&after, SIGHUP));
    CHECK(!sigismember(&after, SIGURG) && !sigismember(&after, SIGSEGV));
}

TEST(a_thread_gets_the_stack_asked_for)
{
    struct report report;
    size_t        wanted = 24 << 20; /* more than the default: glibc may reuse a larger one */

    get_report(&report, "stack", wanted);
    CHECK(report.stack_bytes >= wanted);
}

TEST(a_stack_that_cannot_be_is_an_error)
{
    struct thread thread;
    struct err    err;

    CHECK_INT(thread_start(&thread, "tiny", 16, fill_report, NULL, &err), ERR_SYSTEM);
    CHECK(strstr(err.text, "tiny") != NULL);
}

int main(void)
{
    return check_run();
}
