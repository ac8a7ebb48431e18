#include "server/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "server/supervisor.h"
#include "vm/sched.h"
#include "vm/task.h"

enum { STACK_BYTES = 64 * 1024 }; /* a vector unit's registers alone may be 11 KB of the frame */

/* A signal handler gets no argument, so these stand alone: set once, and some for each thread. */
static struct last_words                *last_words;
static _Thread_local const struct sched *blamed;
static _Thread_local void               *stack;

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

/* Where there is one already, it is a sanitizer's. Without memory the thread's own must do. */
static void take_stack(void)
{
    stack_t ours = { .ss_size = STACK_BYTES }, there;

    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE))
        return;
    stack = ours.ss_sp = malloc(STACK_BYTES);
    if (stack)
        sigaltstack(&ours, NULL);
}

static void give_stack_back(void)
{
    stack_t none = { .ss_flags = SS_DISABLE };

    if (stack)
        sigaltstack(&none, NULL);
    free(stack);
    stack = NULL;
}

void crash_blame(const struct sched *sched)
{
    if (sched && !stack)
        take_stack();
    else if (!sched)
        give_stack_back();
    blamed = sched;
}
