/* vm/task.h - tasks: coroutines that wait, scopes that end after their children, cancellation
 * that never resumes (CORE, decisions 5 and 6, seam 3).
 *
 * A coroutine waits for at most one thing, so the wait is a member of the task, not of the thing:
 *
 *     wait begins   T_RUNNING -> T_WAITING, with the op and how it is called off
 *     wait ends     T_WAITING -> T_READY, once, whoever comes first (done, timeout); later ones
 *                   find T_READY and return
 *     cancel        T_WAITING: disarm; T_READY: the result is dropped; T_RUNNING: flagged. Then
 *                   T_ENDED: never resumed again; defers run in a fresh task.
 *
 * Everything here belongs to the scheduler's thread. */
#ifndef VM_TASK_H
#define VM_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "vm/task_spec.h"

struct sched;
struct task;
struct vm;

/* --- life ------------------------------------------------------------------------------------ */

/* From the loop's turn (no task running): runs until the first wait before it returns; NULL if it
 * is over by then. From inside a task: starts at the running task's next wait. Without memory for
 * a coroutine it ends as TASK_CANCELLED with the reason "memory". */
struct task *task_start(struct vm *vm, const struct task_spec *spec);

/* From a lua_CFunction of a running task: a task that calls the function below the NARGS values on
 * top of L's stack with them; they are taken off. spec->prepare is not used. Starts at the running
 * task's next wait. Raises on lack of memory. */
struct task *task_spawn(lua_State *L, int nargs, const struct task_spec *spec);

/* The whole task with its children is cancelled after DELAY_MS; task_reason() is "deadline". 0
 * takes the deadline away. Long ones may come up to 100 ms late. */
void task_set_deadline(struct task *task, uint64_t delay_ms);
/* Seconds to the nearest deadline of TASK and those it is a child of; negative when none was set. */
double task_time_left(const struct task *task);

/* REASON is a constant string. Idempotent; does nothing to a task that has ended. */
void        task_cancel(struct task *task, const char *reason);
const char *task_reason(const struct task *task);

enum task_state task_state(const struct task *task);
struct vm      *task_vm(const struct task *task);
void           *task_arg(const struct task *task);
struct task    *task_root(struct task *task); /* the request or timer that all this belongs to */
struct task    *task_parent(const struct task *task);
const char     *task_label(const struct task *task);
/* ON_END is still to hear its end: whose task it is, and so what its arg is. */
bool task_is_of(const struct task *task, task_end_fn on_end);
bool task_loads(const struct task *task); /* it works for a root whose spec says so */

/* on_result or on_end may call this to go on in the same task with another function (slow paths of
 * an answer). CO's stack holds the function and NARGS arguments on top. ON_OVER takes the place of
 * the callback that called, and is called at that end. */
void task_continue(struct task *task, lua_State *co, int nargs, task_end_fn on_over);

/* In on_result or on_end after TASK_RAISED: pushes on L the traceback of where the error was
 * raised, through all coroutines it came by. */
void task_push_traceback(lua_State *L, struct task *task);
/* The same behind the error's message, as one text for a log. */
void task_push_failure(lua_State *L, struct task *task);

/* --- waiting, from a lua_CFunction -------------------------------------------------------------- */

/* The running task; raises a clear error where waiting is impossible (code outside a task). */
struct task *task_current(lua_State *L);

/* A task that was cancelled while it ran stops at its next call that can wait, ready or not:
 *
 *     struct task *task = task_current(L);
 *     if (task_is_cancelled(task))
 *         return task_stop(L);
 *     if (channel->count > 0)                              // the ready path
 *         ...
 *     return task_wait(L, op, disarm, push);
 *
 * task_wait() looks by itself. Where no yield can pass, task_stop() raises `cancelled`. */
bool task_is_cancelled(const struct task *task);
int  task_stop(lua_State *L);

/* Ends a lua_CFunction: `return task_wait(L, op, disarm, push);`.
 *
 * PUSH(L, op) makes the call's results once task_wake() was called: runs protected in the
 * scheduler's batch and returns the number of values on top. The call's arguments are still at
 * 1..top of L, and stay alive while it waits.
 * DISARM(op) calls the wait off (timeout, cancel, a wait that cannot pass): stop the timer, unlink
 * the reader, close the socket, orphan the query. Never resumes; may run outside of protection, so
 * it touches no Lua stack. It may come after task_wake(), when the result is not wanted any more.
 *
 * Exactly one of the two has the last word and gives the op's memory back: PUSH as its last act,
 * for if it raises (memory), DISARM follows. */
int task_wait(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push);

/* Also ends the wait after TIMEOUT_MS (UINT64_MAX: never): disarm, then push_timeout(L). */
int task_wait_for(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push,
                  uint64_t timeout_ms, task_timeout_fn push_timeout);

/* TASK_OP_BYTES for the op of the running task's wait, so that a wait need not allocate. Valid until
 * push or disarm returns. */
void *task_op(struct task *task);

/* What TASK waited for is done. From callbacks, done() of jobs, other tasks' calls. The op must
 * have kept the task only between task_wait() and disarm or push. */
void task_wake(struct task *task);

/* Whether TASK's wait, if it is in one, ends by itself: it was given a time. */
bool task_wait_ends(const struct task *task);

/* Whether a wait would be able to pass from L up to its task. */
bool task_can_wait(lua_State *L);

/* --- what a task holds and owes ------------------------------------------------------------------ */

/* Released when the task ends, however it ends, last held first. */
struct held {
    struct list link;
    void (*release)(struct held *self); /* outside of protection: touches no Lua stack */
};
void task_hold(struct task *task, struct held *held);
void task_unhold(struct held *held);

/* The function at INDEX of L runs when the running task ends (API, section 7: srv.defer). */
void task_defer(lua_State *L, int index);

/* --- tickets: how other threads name a task ------------------------------------------------------ */

/* Goes stale when the task's present wait ends, or the task. */
struct ticket {
    uint32_t worker, slot, seq;
};
struct ticket task_ticket(const struct task *task);
struct task  *ticket_task(struct sched *sched, struct ticket ticket); /* NULL when stale */

#endif
