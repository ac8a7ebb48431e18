/* vm/task_spec.h - what is said of a task by who starts it, and of a wait by who begins it (vm/task.h
 * has the calls). */
#ifndef VM_TASK_SPEC_H
#define VM_TASK_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

struct task;

enum task_state { T_READY, T_RUNNING, T_WAITING, T_ENDED };

enum task_end {
    TASK_RETURNED,  /* results are on CO's stack, 1..top */
    TASK_RAISED,    /* the error value is on top of CO's stack; task_push_traceback() tells where */
    TASK_CANCELLED, /* never resumed; CO is NULL; task_reason() says why */
};

/* CO is NULL for TASK_CANCELLED, else the task's coroutine: what lies on it is the callee's until
 * it returns, and may be left there. Runs protected inside the scheduler's batch: may push and
 * raise (which is reported), may start, wake and cancel tasks, and may not wait. */
typedef void (*task_end_fn)(struct task *task, enum task_end how, lua_State *co, void *arg);

struct task_spec {
    /* Pushes a function and its arguments on CO (empty), returns the number of arguments. Runs
     * protected: may raise, which ends the task as TASK_RAISED. */
    int (*prepare)(lua_State *co, struct task *task, void *arg);
    /* The function is over; children and defers may still run, and ARG is in use. For who must
     * answer at once: a request. May be NULL. */
    task_end_fn on_result;
    /* The task is over: its children are gone and its defers have run. Nothing names ARG any
     * more. Gets what on_result would have got, or a NULL co after an on_result. May be NULL. */
    task_end_fn  on_end;
    void        *arg;
    struct task *parent;      /* a scope: we are cancelled when it ends; NULL: a root of its VM */
    const char  *label;       /* for logs and the watchdog: "GET /users/:id"; outlives the task;
                              * NULL: the parent's */
    uint64_t     deadline_ms; /* as task_set_deadline(); 0: none */
    bool         no_cancel;   /* defers and error formatters */
    bool         loads;       /* a root that loads code of the app: what it opens is the app's */
};

/* --- waits: see task_wait() --------------------------------------------------------------------- */

typedef void (*task_disarm_fn)(void *op);
typedef int (*task_push_fn)(lua_State *L, void *op);
typedef int (*task_timeout_fn)(lua_State *L);

enum { TASK_OP_BYTES = 64 };

#endif
