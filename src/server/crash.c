#include "server/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "server/supervisor.h"
#include "vm/sched.h"
#include "vm/task.h"

/* A signal handler gets no argument, so these two stand alone: set once, and one for each thread. */
static struct last_words                *last_words;
static _Thread_local const struct sched *blamed;

/* Async-signal-safe: reads memory, writes to the shared page. */
static void on_fault(int number)
{
    const struct task *task  = blamed ? sched_running(blamed) : NULL;
    const char        *label = task ? task_label(task) : NULL;

    if (last_words && atomic_exchange(&last_words->signal, number) == 0 && label)
        strncpy(last_words->route, label, sizeof(last_words->route) - 1);
    /* The handler was reset (SA_RESETHAND): this ends the process, with a core where one is due. */
    raise(number);
}

void crash_watch(struct last_words *words)
{
    static const int FAULTS[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    struct sigaction action   = { .sa_handler = on_fault, .sa_flags = SA_RESETHAND | SA_ONSTACK };

    last_words = words;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(FAULTS); i++)
        sigaction(FAULTS[i], &action, NULL);
}

void crash_blame(const struct sched *sched)
{
    blamed = sched;
}
