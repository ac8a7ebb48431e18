#include "bind/process.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "ev/child.h"

/* --- its end ---------------------------------------------------------------------------------------- */

static void let_go(struct process *process)
{
    if (--process->holders == 0)
        free(process);
}

/* Who waits for it finds the outcome. */
static void close_end(struct process_end *end)
{
    pipe_close(&end->pipe);
    end->outcome = PIPE_END;
    if (end->task)
        task_wake(end->task);
}

/* A zombie is kept for as long as its output comes: those of its group may still be writing. */
static void reap_if_over(struct process *process)
{
    if (!process->child || !process->has_status || process->ends[PROCESS_OUT].pipe.fd >= 0 ||
        process->ends[PROCESS_ERR].pipe.fd >= 0)
        return;
    child_reap(process->child);
    process->child = NULL;
}

static void end_process(struct process *process);

/* It has exited, and nobody can read any more what it said. */
static void bury(struct process *process)
{
    close_end(&process->ends[PROCESS_OUT]);
    close_end(&process->ends[PROCESS_ERR]);
    reap_if_over(process);
    end_process(process);
}

static void on_exit_seen(struct child *child, void *arg)
{
    struct process *process = arg;

    process->has_status = true;
    process->status     = child_status(child);
    waitq_wake_all(&process->waiters);
    reap_if_over(process);
    if (process->holders == 1) /* the box is gone */
        bury(process);
}

/* Its task is over, or the VM goes. */
static void end_process(struct process *process)
{
    struct child *child = process->child;

    process->child = NULL;
    if (child)
        child_end(child);
    for (int i = 0; i < PROCESS_PIPES; i++)
        close_end(&process->ends[i]);
    waitq_wake_all(&process->waiters);
    handle_unlink(&process->handle);
    task_unhold(&process->held);
    let_go(process);
}

static void on_task_end(struct held *held)
{
    end_process(container_of(held, struct process, held));
}

static void cut(struct handle *handle)
{
    end_process(container_of(handle, struct process, handle));
}

/* Its task need not remember what is over. */
void process_let_go(struct process *process)
{
    if (process->has_status && list_is_linked(&process->held.link))
        bury(process);
    let_go(process);
}

/* --- pipes ------------------------------------------------------------------------------------------ */

bool process_try_read(struct process_end *end)
{
    end->got     = malloc(end->left);
    end->outcome = end->got ? pipe_read(&end->pipe, end->got, end->left) : PIPE_FAIL;
    end->error   = end->got ? errno : ENOMEM;
    if (end->outcome > 0)
        return true;
    free(end->got);
    end->got = NULL;
    return end->outcome != PIPE_WAIT;
}

bool process_try_write(struct process_end *end)
{
    while (end->left > 0) {
        end->outcome = pipe_write(&end->pipe, end->bytes, end->left);
        end->error   = errno;
        if (end->outcome < 0)
            return end->outcome != PIPE_WAIT;
        end->bytes += end->outcome;
        end->left -= (size_t)end->outcome;
    }
    end->outcome = 1;
    return true;
}

static void on_pipe(struct pipe_end *pipe)
{
    struct process_end *end = container_of(pipe, struct process_end, pipe);

    if (!end->task || end->outcome != PIPE_WAIT)
        return;
    if (end == &end->process->ends[PROCESS_IN] ? process_try_write(end) : process_try_read(end))
        task_wake(end->task);
}

void process_close(struct process_end *end)
{
    close_end(end);
    reap_if_over(end->process);
}

/* It is not reaped here: its task may be about to end, and then those that it has started must still be
 * found by its number. */
void process_call_off(struct process_end *end)
{
    end->task = NULL;
    free(end->got);
    end->got = NULL;
    pipe_close(&end->pipe);
}

/* --- its beginning ---------------------------------------------------------------------------------- */

struct process *process_new(struct vm *vm, struct task *task)
{
    struct process *process = calloc(1, sizeof(*process));

    if (!process)
        return NULL;
    process->holders      = 2;
    process->held.release = on_task_end;
    process->handle.cut   = cut;
    list_init(&process->held.link);
    list_init(&process->handle.link);
    waitq_init(&process->waiters);
    for (int i = 0; i < PROCESS_PIPES; i++) {
        process->ends[i].process = process;
        process->ends[i].pipe.fd = -1;
    }
    handle_link(&process->handle, vm);
    task_hold(task, &process->held);
    return process;
}

static int open_ends(struct process *process, struct loop *loop, struct child_start *start)
{
    int rc = 0;

    for (int i = 0; i < PROCESS_PIPES; i++) {
        int fd = start->ends[i];

        start->ends[i] = -1;
        if (fd >= 0 && pipe_open(&process->ends[i].pipe, loop, fd, on_pipe) != 0)
            rc = -1;
    }
    return rc;
}

int process_take(struct process *process, struct loop *loop, struct children *children,
                 struct child_start *start)
{
    process->pid = start->pid;
    if (open_ends(process, loop, start) == 0)
        process->child = child_adopt(children, start, on_exit_seen, process);
    if (process->child)
        return 0;
    end_process(process);
    return -1;
}
