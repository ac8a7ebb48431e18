/* vm/waitq.h - tasks that wait for the same thing, first come, first served. */
#ifndef VM_WAITQ_H
#define VM_WAITQ_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "vm/task.h"

struct waitq {
    struct list waiters;
};

/* One who waits; lies in the memory of its own wait. */
struct waiter {
    struct list  link;
    struct task *task;
    lua_State   *L; /* where it waits: the arguments of the call are at 1..top-1 */
    void (*on_drop)(
        struct waiter *self); /* cancelled between waitq_wake() and its push; may be NULL */
    void *owner;              /* whoever has the queue */
    int   word;               /* the waker's, for push and on_drop; 0 until then */
    bool  woken;
};

void waitq_init(struct waitq *queue);

static inline bool waitq_is_empty(const struct waitq *queue)
{
    return list_is_empty(&queue->waiters);
}

/* Ends a lua_CFunction, as task_wait_for(): PUSH gets the struct waiter as op. What the queue is part
 * of must be among the call's arguments or upvalues, so that it lives. ON_DROP may be NULL. */
int waitq_wait(lua_State *L, struct waitq *queue, task_push_fn push, uint64_t timeout_ms,
               task_timeout_fn push_timeout, void (*on_drop)(struct waiter *self), void *owner);

bool waitq_has(const struct waitq *queue, const struct task *task);

struct waiter *waitq_first(struct waitq *queue); /* NULL: none */
/* Takes it off the queue; its push runs in the scheduler's next batch. */
void waitq_wake(struct waiter *waiter);
void waitq_wake_all(struct waitq *queue);

#endif
