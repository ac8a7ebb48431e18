/* Deadlines of tasks. Most have the length of the server's or a route's timeout, and most tasks end
 * long before: equal lengths share a queue in order of start (2 ns to enter, against 20 and more
 * for a timer), and a task that never waits enters none. */
#include "base/compiler.h"
#include "vm/task_impl.h"
#include "vm/vm_state.h"

enum { SHARED_MS_MIN = 1000 }; /* a queue's tick, up to a tenth, would be late for shorter ones */

static void end(struct task *task)
{
    task->vm->sched->on_deadline(task);
}

static void on_limit(struct limit *limit)
{
    end(container_of(limit, struct task, limit));
}

static void on_timer(struct timer *timer)
{
    end(container_of(timer, struct task, deadline));
}

void deadline_open(struct sched *sched, void (*on_deadline)(struct task *task))
{
    sched->on_deadline = on_deadline;
    for (unsigned i = 0; i < DEADLINE_QUEUES_MAX; i++)
        limit_queue_init(&sched->deadlines[i], sched->loop, 0, on_limit);
}

void deadline_close(struct sched *sched)
{
    for (unsigned i = 0; i < DEADLINE_QUEUES_MAX; i++)
        limit_queue_fini(&sched->deadlines[i]);
}

void deadline_init(struct task *task)
{
    limit_init(&task->limit);
    timer_init(&task->deadline, on_timer);
}

static struct limit_queue *find_queue(struct sched *sched, uint64_t length_ms)
{
    for (unsigned i = 0; i < DEADLINE_QUEUES_MAX; i++)
        if (sched->deadlines[i].limit_ms == length_ms)
            return &sched->deadlines[i];
    return NULL;
}

/* An empty one is taken over. NULL: all serve other lengths. */
static struct limit_queue *queue_for(struct sched *sched, uint64_t length_ms)
{
    struct limit_queue *queue = find_queue(sched, length_ms);

    for (unsigned i = 0; !queue && i < DEADLINE_QUEUES_MAX; i++) {
        if (!list_is_empty(&sched->deadlines[i].running))
            continue;
        queue = &sched->deadlines[i];
        limit_queue_fini(queue);
        limit_queue_init(queue, sched->loop, length_ms, on_limit);
    }
    return queue;
}

void deadline_set(struct task *task, uint64_t delay_ms)
{
    uint64_t now_ms = loop_now_ms(task->vm->sched->loop);

    task->due_ms    = delay_ms > UINT64_MAX / 2 ? UINT64_MAX / 2 : now_ms + delay_ms;
    task->length_ms = delay_ms;
}

static bool is_armed(const struct task *task)
{
    return list_is_linked(&task->limit.link) || timer_is_running(&task->deadline);
}

void deadline_arm(struct task *task)
{
    struct sched       *sched = task->vm->sched;
    uint64_t            now_ms;
    struct limit_queue *queue = NULL;

    if (task->due_ms == 0 || is_armed(task))
        return;
    now_ms = loop_now_ms(sched->loop);
    if (task->length_ms >= SHARED_MS_MIN && task->due_ms == now_ms + task->length_ms)
        queue = queue_for(sched, task->length_ms);
    if (queue)
        limit_start(&task->limit, queue);
    else
        timer_start(&task->deadline, sched->loop,
                    task->due_ms > now_ms ? task->due_ms - now_ms : 0);
}

void deadline_disarm(struct task *task)
{
    limit_stop(&task->limit);
    if (timer_is_running(&task->deadline))
        timer_stop(&task->deadline, task->vm->sched->loop);
}
