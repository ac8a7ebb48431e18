/* bind/process.h - a program that an app has started, as its task and Lua see it.
 *
 * Two have it in hand: the task that it belongs to, which ends it, and the userdata by which Lua asks;
 * the last frees it. Knows no Lua: lexec.c has its methods. On the thread of its VM. */
#ifndef BIND_PROCESS_H
#define BIND_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "ev/pipe.h"
#include "vm/task.h"
#include "vm/vm_state.h"
#include "vm/waitq.h"

struct child;
struct child_start;
struct children;
struct loop;
struct process;

enum process_pipe { PROCESS_IN, PROCESS_OUT, PROCESS_ERR, PROCESS_PIPES };

/* One of its pipes, and the one task that may wait for it. */
struct process_end {
    struct pipe_end pipe; /* fd -1: closed */
    struct process *process;
    struct task    *task;    /* NULL: nobody waits */
    const char     *bytes;   /* of who writes: the rest, in a string that its call keeps alive */
    size_t          left;    /* of it; of who reads: how many bytes it wants */
    char           *got;     /* for who reads; freed by it */
    ssize_t         outcome; /* of the last try: bytes, or PIPE_WAIT, PIPE_END, PIPE_FAIL */
    int             error;   /* errno of PIPE_FAIL */
};

struct process {
    unsigned           holders;
    struct held        held;   /* by its task */
    struct handle      handle; /* of the VM */
    struct child      *child;  /* NULL: reaped, or being ended */
    pid_t              pid;
    bool               has_status;
    int                status;  /* as child_status() */
    struct waitq       waiters; /* for its exit */
    struct process_end ends[PROCESS_PIPES];
};

/* Held by TASK and by the caller. NULL: no memory. */
struct process *process_new(struct vm *vm, struct task *task) MUST_CHECK;
/* Gives it START's process and pipes. -1: it could not take them all, and is ended. */
int process_take(struct process *process, struct loop *loop, struct children *children,
                 struct child_start *start) MUST_CHECK;
/* The userdata goes: nobody reads, asks or waits any more. */
void process_let_go(struct process *process);

/* One try for `left` and `bytes`, whose outcome is noted. False: PIPE_WAIT; once `task` is set the
 * loop tries on, and wakes it. */
bool process_try_read(struct process_end *end);
bool process_try_write(struct process_end *end);

/* Who waits for it is woken, with PIPE_END as outcome. */
void process_close(struct process_end *end);
/* A wait was called off: what was waited for is closed, as nobody knows how far it came. */
void process_call_off(struct process_end *end);

#endif
