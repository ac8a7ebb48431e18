#include "ev/thread.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"

static const int open_signals[] = { SIGURG, SIGPROF, SIGSEGV, SIGBUS, SIGFPE,
                                    SIGILL, SIGABRT, SIGTRAP, SIGSYS };

static void fill_blocked(sigset_t *set)
{
    sigfillset(set);
    for (size_t i = 0; i < ARRAY_LEN(open_signals); i++)
        sigdelset(set, open_signals[i]);
}

void thread_block_signals(void)
{
    sigset_t blocked;

    fill_blocked(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

static void *thread_main(void *arg)
{
    struct thread *thread = arg;

    pthread_setname_np(pthread_self(), thread->name);
    thread->run(thread->arg);
    sem_post(&thread->ended);
    return NULL;
}

static int create(struct thread *thread, size_t stack_bytes)
{
    pthread_attr_t attr;
    int            rc = pthread_attr_init(&attr);

    if (rc != 0)
        return rc;
    if (stack_bytes > 0)
        rc = pthread_attr_setstacksize(&attr, stack_bytes);
    if (rc == 0)
        rc = pthread_create(&thread->id, &attr, thread_main, thread);
    pthread_attr_destroy(&attr);
    return rc;
}

int thread_start(struct thread *thread, const char *name, size_t stack_bytes,
                 void (*run)(void *arg), void *arg, struct err *err)
{
    sigset_t blocked, before;
    int      rc;

    snprintf(thread->name, sizeof(thread->name), "%s", name);
    thread->run = run;
    thread->arg = arg;
    sem_init(&thread->ended, 0, 0);

    /* The new thread inherits the mask, so there is no moment in which it could be hit. */
    fill_blocked(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    rc = create(thread, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        sem_destroy(&thread->ended);
        errno = rc;
        return err_set_errno(err, "cannot start thread %s", thread->name);
    }
    return 0;
}

void thread_join(struct thread *thread)
{
    pthread_join(thread->id, NULL);
    sem_destroy(&thread->ended);
}

bool thread_join_within(struct thread *thread, unsigned ms)
{
    uint64_t        at = clock_mono_ns() + ms * NS_PER_MS;
    struct timespec ts = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

    while (sem_clockwait(&thread->ended, CLOCK_MONOTONIC, &ts) != 0)
        if (errno != EINTR)
            return false;
    thread_join(thread);
    return true;
}
