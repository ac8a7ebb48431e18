/* vm/task.h - tasks: coroutines that wait, scopes that end after their children, cancellation
 * that never resumes (CORE, decisions 5 and 6, seam 3).
 *
 * A coroutine waits for at most one thing, so the wait is a member of the task, not of the thing:
 *
 *     wait begins   T_RUNNING -> T_WAITING, with the op and how it is called off
 *     wait ends     T_WAITING -> T_READY, once, whoever comes first (done, timeout); later ones
 *                   find T_READY and return
 *     cancel        T_WAITING: disarm; T_READY: the result is dropped; T_RUNNING: flagged. Then
 *                   T_ENDED: never resumed again; defers run in a fresh task. */
#ifndef VM_TASK_H
#define VM_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct err;
struct sched;
struct task;
struct vm;

enum task_state { T_READY, T_RUNNING, T_WAITING, T_ENDED };

enum task_end {
    TASK_RETURNED,  /* results are on CO's stack, 1..top */
    TASK_RAISED,    /* the error value is on top of CO's stack */
    TASK_CANCELLED, /* never resumed; nothing is on the stack; task_reason() says why */
};

/* --- the scheduler: one for each worker ------------------------------------------------------ */

int          sched_open(struct sched **out, struct loop *loop, unsigned worker_id, struct err *err);
void         sched_close(struct sched *sched);
struct loop *sched_loop(const struct sched *sched);
/* The task that runs now, or NULL. For the watchdog's log too. */
struct task *sched_running(const struct sched *sched);

/* --- life ------------------------------------------------------------------------------------ */

struct task_spec {
    /* Pushes a function and its arguments on CO (empty), returns the number of arguments. Runs
     * protected: may raise, which ends the task as TASK_RAISED. */
    int (*prepare)(lua_State *co, struct task *task, void *arg);
    /* The task is over and its children are gone. Runs protected inside the batch: may push and
     * raise (an error here is logged). CO is recycled when this returns, and must be empty or
     * may hold leftovers; NULL co for TASK_CANCELLED. May be NULL. */
    void (*on_end)(struct task *task, enum task_end how, lua_State *co, void *arg);
    void        *arg;
    struct task *parent;    /* a scope: we are cancelled when it ends; NULL: a root of its VM */
    const char  *label;     /* for logs and the watchdog: "GET /users/:id"; outlives the task */
    bool         no_cancel; /* defers and error formatters */
};

/* From the loop's turn (no task running): runs until the first wait before it returns. From inside
 * a task: starts at the running task's next wait. */
struct task *task_start(struct vm *vm, const struct task_spec *spec);

/* With a deadline: the whole task with its children is cancelled at that time, on_end says
 * TASK_CANCELLED and task_reason() is "deadline". 0 takes it away. */
void   task_set_deadline(struct task *task, uint64_t delay_ms);
double task_time_left(const struct task *task); /* seconds; negative when none was set */

/* REASON is a constant string. Idempotent. Not to be called on an ended task. */
void        task_cancel(struct task *task, const char *reason);
const char *task_reason(const struct task *task);

void        *task_arg(const struct task *task);
struct task *task_root(struct task *task); /* the request or timer that all this belongs to */

/* Resumes a finished coroutine with another function in the same task: on_end may call this
 * to go on (slow paths of an answer) and is called again at that end. CO's stack holds the
 * function and NARGS arguments. */
void task_continue(struct task *task, lua_State *co, int nargs,
                   void (*on_end)(struct task *, enum task_end, lua_State *, void *));

/* --- waiting, from a lua_CFunction -------------------------------------------------------------- */

/* The running task; raises a clear error where waiting is impossible (no task: code outside one). */
struct task *task_current(lua_State *L);

/* Ends a lua_CFunction: `return task_wait(L, op, disarm, push);`.
 * DISARM(op) calls the wait off (timeout, cancel): stop the timer, unlink the reader, close the
 * socket, orphan the query. At most once; never resumes; may free op.
 * PUSH(L, op) makes the call's results once task_wake() was called: runs protected in the
 * scheduler's batch and returns the number of values. It owns op then. */
typedef void (*task_disarm_fn)(void *op);
typedef int (*task_push_fn)(lua_State *L, void *op);
int task_wait(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push);

/* Also ends the wait after TIMEOUT_MS (UINT64_MAX: never): disarm, then push_timeout(L). */
int task_wait_for(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push,
                  uint64_t timeout_ms, int (*push_timeout)(lua_State *L));

/* What TASK waited for is done. Loop's thread; from callbacks, done() of jobs, other tasks' calls.
 * The op must have kept the task only between task_wait() and disarm or push. */
void task_wake(struct task *task);

/* --- what a task holds: released in this order's reverse when it ends, however it ends ---------- */

struct held {
    struct list link;
    void (*release)(struct held *self); /* cancelled or ended while holding */
};
void task_hold(struct task *task, struct held *held);
void task_unhold(struct held *held);

/* --- tickets: how other threads name a task ------------------------------------------------------ */

struct ticket {
    uint32_t worker, slot, seq;
};
struct ticket task_ticket(const struct task *task);
struct task  *ticket_task(struct sched *sched, struct ticket ticket); /* NULL when stale */

#endif
