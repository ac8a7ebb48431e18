#include "vm/waitq.h"

#include "base/compiler.h"

_Static_assert(sizeof(struct waiter) <= TASK_OP_BYTES, "a waiter lies in its task");

void waitq_init(struct waitq *queue)
{
    list_init(&queue->waiters);
}

static void disarm(void *op)
{
    struct waiter *waiter = op;

    list_remove(&waiter->link);
    if (waiter->woken && waiter->on_drop)
        waiter->on_drop(waiter);
}

int waitq_wait(lua_State *L, struct waitq *queue, task_push_fn push, uint64_t timeout_ms,
               task_timeout_fn push_timeout, void (*on_drop)(struct waiter *self), void *owner)
{
    struct task   *task   = task_current(L);
    struct waiter *waiter = task_op(task);

    *waiter = (struct waiter){ .task = task, .L = L, .on_drop = on_drop, .owner = owner };
    list_append(&queue->waiters, &waiter->link);
    return task_wait_for(L, waiter, disarm, push, timeout_ms, push_timeout);
}

bool waitq_has(const struct waitq *queue, const struct task *task)
{
    list_each(node, &queue->waiters)
    {
        if (container_of(node, struct waiter, link)->task == task)
            return true;
    }
    return false;
}

struct waiter *waitq_first(struct waitq *queue)
{
    return waitq_is_empty(queue) ? NULL : container_of(queue->waiters.next, struct waiter, link);
}

void waitq_wake(struct waiter *waiter)
{
    list_remove(&waiter->link);
    waiter->woken = true;
    task_wake(waiter->task);
}

void waitq_wake_all(struct waitq *queue)
{
    while (!waitq_is_empty(queue))
        waitq_wake(waitq_first(queue));
}
