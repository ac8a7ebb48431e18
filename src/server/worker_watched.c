#include "server/worker_watched.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/worker_state.h"
#include "vm/sched.h"
#include "vm/stop.h"
#include "vm/task.h"
#include "vm/vm.h"

enum { ASK_MS = 20 }; /* an interrupted worker answers the watchdog within */

static _Thread_local struct worker *this_worker;

void worker_watched_here(struct worker *w)
{
    this_worker = w;
}

static void copy_label(char *to, const char *label)
{
    strncpy(to, label, WORKER_LABEL_BYTES - 1);
    to[WORKER_LABEL_BYTES - 1] = '\0';
}

static void answer(struct worker *w)
{
    struct task *task  = sched_running(w->sched);
    const char  *label = task ? task_label(task) : NULL;

    copy_label(w->label, label ? label : "(none)");
    if (task)
        vm_interrupt_stack(task_vm(task));
    sem_post(&w->answered);
}

/* SIGURG in the worker's thread, from the watchdog. */
static void on_sigurg(int number)
{
    struct worker *w      = this_worker;
    int            before = errno;

    if (!w)
        return;
    if (atomic_exchange(&w->asked, false))
        answer(w);
    stop_slice(w->sched, atomic_load(&w->over_slice), atomic_load(&w->over_ms));
    errno = before;
}

void worker_watched_ask(struct worker *w, char label[WORKER_LABEL_BYTES])
{
    uint64_t        at = clock_mono_ns() + ASK_MS * (uint64_t)NS_PER_MS;
    struct timespec ts = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

    while (sem_trywait(&w->answered) == 0) /* an answer that came too late */
        continue;
    atomic_store(&w->asked, true);
    pthread_kill(w->thread.id, SIGURG);
    if (sem_clockwait(&w->answered, CLOCK_MONOTONIC, &ts) == 0)
        memcpy(label, w->label, WORKER_LABEL_BYTES);
    else
        copy_label(label, "(unknown)");
}

void worker_watched_stop_slice(struct worker *w, uint64_t slice, uint64_t slice_ms)
{
    atomic_store(&w->over_slice, slice);
    atomic_store(&w->over_ms, slice_ms);
    pthread_kill(w->thread.id, SIGURG);
}

/* Once for the process: the handler finds the worker by its thread. */
void worker_watched_take_signals(void)
{
    struct sigaction action = { .sa_handler = on_sigurg, .sa_flags = SA_RESTART };

    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGPROF); /* both set hooks */
    sigaction(SIGURG, &action, NULL);
}
