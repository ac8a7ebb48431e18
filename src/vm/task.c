#include "vm/task.h"

#include <assert.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "vm/coroutine.h"
#include "vm/task_impl.h"
#include "vm/trace.h"
#include "vm/vm_state.h"

/* --- cells ------------------------------------------------------------------------------------- */

static void on_wait_timeout(struct timer *timer);

static struct task *take_cell(struct sched *sched)
{
    if (unlikely(list_is_empty(&sched->free)))
        cell_add_chunk(sched, on_wait_timeout);
    return container_of(list_take_first(&sched->free), struct task, queued);
}

static void enter_scope(struct task *task, struct vm *vm, struct task *parent)
{
    task->vm     = vm;
    task->parent = parent;
    list_append(&vm->tasks, &task->of_vm);
    vm->task_count++;
    vm->sched->task_count++;
    heap_charge(&vm->heap, sizeof(*task));
    if (parent)
        list_append(&parent->children, &task->sibling);
}

struct task *task_new(struct vm *vm, const struct task_spec *spec)
{
    struct task *task = take_cell(vm->sched);

    enter_scope(task, vm, spec->parent);
    task->label       = spec->label || !spec->parent ? spec->label : spec->parent->label;
    task->reason      = NULL;
    task->state       = T_READY;
    task->loaded      = false;
    task->began       = false;
    task->stopped     = false;
    task->exposed     = false;
    task->no_cancel   = spec->no_cancel;
    task->loads       = spec->loads;
    task->answered    = false;
    task->closed      = false;
    task->continued   = false;
    task->wait.disarm = NULL;
    task->grown       = 0;
    task->prepare     = spec->prepare;
    task->on_result   = spec->on_result;
    task->on_end      = spec->on_end;
    task->arg         = spec->arg;
    task->due_ms      = 0;
    if (spec->deadline_ms)
        deadline_set(task, spec->deadline_ms);
    return task;
}

/* Only what ended by itself is used again: an abandoned coroutine still has its frames. */
static void free_coroutines(struct task *task)
{
    struct vm *vm = task->vm;

    if (task->co.L) {
        if (likely(task->how != TASK_CANCELLED && !task->exposed))
            coroutine_give(vm, &task->co);
        else
            coroutine_drop(vm, &task->co);
    }
    if (unlikely(task->failed.L)) {
        coroutine_drop(vm, &task->failed);
        trace_forget(vm->batch);
    }
}

void task_queue(struct task *task)
{
    struct sched *sched  = task->vm->sched;
    bool          is_new = task->state == T_READY && !task->began;

    list_append(is_new ? &sched->started : &sched->ready, &task->queued);
    if (!sched->in_batch)
        loop_later(sched->loop, &sched->later);
}

/* The parent may have waited for this to settle. */
static void leave_scope(struct task *task)
{
    struct vm   *vm     = task->vm;
    struct task *parent = task->parent;

    list_remove(&task->of_vm);
    list_remove(&task->sibling);
    vm->sched->task_count--;
    heap_discharge(&vm->heap, sizeof(*task));
    if (parent && parent->state == T_ENDED && list_is_empty(&parent->children) &&
        !list_is_linked(&parent->queued))
        task_queue(parent);
    if (--vm->task_count == 0 && vm->hooks->on_drained)
        vm->hooks->on_drained(vm);
}

void task_free(struct task *task)
{
    struct sched *sched = task->vm->sched;

    free_coroutines(task);
    leave_scope(task);
    task->seq++;
    task->lives++;
    task->state = T_ENDED;
    list_prepend(&sched->free, &task->queued);
}

/* --- start ------------------------------------------------------------------------------------- */

struct task *task_spawn(lua_State *L, int nargs, const struct task_spec *spec)
{
    struct vm       *vm = vm_of(L);
    struct coroutine co;
    struct task     *task;

    if (unlikely(!heap_has_room(&vm->heap, sizeof(*task))))
        luaL_error(L, "not enough memory: %d tasks are alive", (int)vm->task_count);
    co = coroutine_take(vm, L);
    if (!lua_checkstack(co.L, nargs + 1)) {
        coroutine_give(vm, &co);
        luaL_error(L, "too many arguments");
    }
    lua_xmove(L, co.L, nargs + 1);
    task         = task_new(vm, spec);
    task->co     = co;
    task->loaded = true;
    task->nargs  = nargs;
    task_queue(task);
    return task;
}

void task_continue(struct task *task, lua_State *co, int nargs, task_end_fn on_over)
{
    assert(co == task->co.L && task == task->vm->sched->stepped);
    if (task->vm->sched->stage == STAGE_RESULT) {
        task->on_result = on_over;
        task->answered  = false;
    } else {
        task->on_end = on_over;
    }
    task->continued = true;
    task->loaded    = true;
    task->began     = false;
    task->nargs     = nargs;
}

/* --- what it is ---------------------------------------------------------------------------------- */

enum task_state task_state(const struct task *task)
{
    return task->state;
}

struct vm *task_vm(const struct task *task)
{
    return task->vm;
}

void *task_arg(const struct task *task)
{
    return task->arg;
}

struct task *task_parent(const struct task *task)
{
    return task->parent;
}

struct task *task_root(struct task *task)
{
    while (task->parent)
        task = task->parent;
    return task;
}

bool task_is_of(const struct task *task, task_end_fn on_end)
{
    return task->on_end == on_end;
}

bool task_loads(const struct task *task)
{
    while (task->parent)
        task = task->parent;
    return task->loads;
}

const char *task_label(const struct task *task)
{
    return task->label;
}

const char *task_reason(const struct task *task)
{
    return task->reason;
}

/* Pushes the value that the failed coroutine raised. */
static void push_raised(lua_State *L, struct task *task)
{
    lua_State *failed = task->failed.L;

    luaL_checkstack(L, 4, NULL);
    lua_pushvalue(failed, -1);
    lua_xmove(failed, L, 1);
}

void task_push_traceback(lua_State *L, struct task *task)
{
    if (!task->failed.L) {
        lua_pushliteral(L, "");
        return;
    }
    push_raised(L, task);
    trace_push(L, -1, task->failed.L);
    lua_remove(L, -2);
}

void task_push_failure(lua_State *L, struct task *task)
{
    if (!task->failed.L) {
        lua_pushliteral(L, "");
        return;
    }
    push_raised(L, task);
    trace_push_message(L, -1);
    lua_remove(L, -2);
    task_push_traceback(L, task);
    if (lua_objlen(L, -1) == 0) {
        lua_pop(L, 1);
        return;
    }
    lua_pushliteral(L, "\n");
    lua_insert(L, -2);
    lua_concat(L, 3);
}

/* --- waits ----------------------------------------------------------------------------------------- */

struct task *task_current(lua_State *L)
{
    struct vm   *vm   = vm_of(L);
    struct task *task = vm->running;

    if (unlikely(vm->revoked)) {
        luaL_error(L, "this worker was stopped");
    } else if (unlikely(!task)) {
        trace_push_where(L);
        lua_pushliteral(L, "nothing can wait here: this code runs outside of any task, as in __gc");
        lua_concat(L, 2);
        lua_error(L);
    }
    return task;
}

bool task_is_cancelled(const struct task *task)
{
    return task->reason != NULL;
}

bool task_can_wait(lua_State *L)
{
    return coroutine_reaches_task(L);
}

/* Takes the bound op with it. */
static void disarm_now(struct wait *wait)
{
    task_disarm_fn disarm = wait->disarm;

    wait->disarm = NULL;
    if (disarm)
        disarm(wait->op);
}

static void begin_wait(lua_State *L, struct task *task)
{
    if (unlikely(task->vm->links && !coroutine_note_hops(task))) {
        disarm_now(&task->wait);
        luaL_error(L, "not enough memory");
    }
    task->state = T_WAITING;
}

int task_stop(lua_State *L)
{
    struct vm   *vm   = vm_of(L);
    struct task *task = vm->running;

    if (unlikely(coroutine_obstacle(vm, L))) {
        vm_push_error(L, "cancelled", task->reason);
        return lua_error(L);
    }
    task->wait.disarm = NULL;
    begin_wait(L, task);
    task->stopped = true;
    return coroutine_suspend(L);
}

int task_wait(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push)
{
    return task_wait_for(L, op, disarm, push, UINT64_MAX, NULL);
}

int task_wait_for(lua_State *L, void *op, task_disarm_fn disarm, task_push_fn push,
                  uint64_t timeout_ms, task_timeout_fn push_timeout)
{
    struct vm   *vm   = vm_of(L);
    struct task *task = vm->running;
    struct wait *wait = &task->wait;
    lua_State   *obstacle;

    assert(task && task->state == T_RUNNING);
    wait->op           = op;
    wait->disarm       = disarm;
    wait->push         = push;
    wait->push_timeout = push_timeout;
    if (unlikely(task->reason)) {
        disarm_now(wait);
        return task_stop(L);
    }
    obstacle = coroutine_obstacle(vm, L);
    if (unlikely(obstacle)) {
        disarm_now(wait);
        return coroutine_raise_obstacle(L, obstacle);
    }
    begin_wait(L, task);
    if (timeout_ms != UINT64_MAX)
        timer_start(&wait->timer, vm->sched->loop, timeout_ms);
    return coroutine_suspend(L);
}

void *task_op(struct task *task)
{
    return task->op;
}

/* The whole "exactly once": whoever comes second finds another state. */
static void end_wait(struct task *task, enum wake_cause cause)
{
    if (task->state != T_WAITING || task->stopped)
        return;
    task->state      = T_READY;
    task->wait.cause = cause;
    task->seq++;
    if (cause == WAKE_TIMEOUT)
        disarm_now(&task->wait);
    else if (timer_is_running(&task->wait.timer))
        timer_stop(&task->wait.timer, task->vm->sched->loop);
    task_queue(task);
}

void task_wake(struct task *task)
{
    end_wait(task, WAKE_DONE);
}

bool task_wait_ends(const struct task *task)
{
    return timer_is_running(&task->wait.timer);
}

static void on_wait_timeout(struct timer *timer)
{
    end_wait(container_of(timer, struct task, wait.timer), WAKE_TIMEOUT);
}

/* Called off, if it was under way or its result not taken. */
void task_end_wait(struct task *task)
{
    if (timer_is_running(&task->wait.timer))
        timer_stop(&task->wait.timer, task->vm->sched->loop);
    disarm_now(&task->wait);
}

/* --- what it holds ----------------------------------------------------------------------------------- */

void task_hold(struct task *task, struct held *held)
{
    list_append(&task->held, &held->link);
}

void task_unhold(struct held *held)
{
    list_remove(&held->link);
}

static void release_held(struct task *task)
{
    while (!list_is_empty(&task->held)) {
        struct held *held = container_of(task->held.prev, struct held, link);

        list_remove(&held->link);
        held->release(held);
    }
}

/* --- cancellation -------------------------------------------------------------------------------------- */

/* One task alone, its children having been seen to. */
static void abandon(struct task *task, const char *reason)
{
    if (task->state == T_ENDED)
        return;
    if (!task->reason)
        task->reason = reason;
    if (task->state == T_RUNNING || task->stopped)
        return; /* stops at its next call that can wait */
    list_remove(&task->queued);
    task->state = T_ENDED;
    task->how   = TASK_CANCELLED;
    task->seq++;
    task_end_wait(task);
    coroutine_abandon(task);
    deadline_disarm(task);
    task->closed = true;
    release_held(task);
    task_queue(task);
}

/* The first of the tasks from NODE on in PARENT's list that cancelling concerns. */
static struct task *first_to_cancel(struct task *parent, struct list *node)
{
    for (; node != &parent->children; node = node->next) {
        struct task *child = container_of(node, struct task, sibling);

        if (!child->no_cancel)
            return child;
    }
    return NULL;
}

static struct task *deepest(struct task *task)
{
    struct task *child;

    while ((child = first_to_cancel(task, task->children.next)))
        task = child;
    return task;
}

/* What comes behind TASK when the tree under TOP is walked, children before their parent. A loop,
 * since how deep an app nests its tasks is its own affair. */
static struct task *next_to_cancel(struct task *task, struct task *top)
{
    struct task *sibling;

    if (task == top)
        return NULL;
    sibling = first_to_cancel(task->parent, task->sibling.next);
    return sibling ? deepest(sibling) : task->parent;
}

static void cancel_tree(struct task *top, const char *reason)
{
    for (struct task *task = deepest(top); task; task = next_to_cancel(task, top))
        abandon(task, reason);
}

void task_cancel(struct task *task, const char *reason)
{
    if (task->state != T_ENDED && !task->no_cancel && !task->reason)
        cancel_tree(task, reason);
}

void task_cut(struct task *task, const char *reason)
{
    cancel_tree(task, reason);
}

void task_close_scope(struct task *task)
{
    task->closed = true;
    deadline_disarm(task);
    list_each(node, &task->children)
    {
        struct task *child = container_of(node, struct task, sibling);

        task_cancel(child, "the task that started it has ended");
    }
    release_held(task);
}

/* --- deadlines ----------------------------------------------------------------------------------------- */

void task_set_deadline(struct task *task, uint64_t delay_ms)
{
    deadline_disarm(task);
    task->due_ms = 0;
    if (delay_ms == 0 || task->state == T_ENDED)
        return;
    deadline_set(task, delay_ms);
    deadline_arm(task);
}

double task_time_left(const struct task *task)
{
    uint64_t now_ms  = loop_now_ms(task->vm->sched->loop);
    uint64_t nearest = UINT64_MAX;

    for (; task; task = task->parent)
        if (task->due_ms != 0 && task->due_ms < nearest)
            nearest = task->due_ms;
    if (nearest == UINT64_MAX)
        return -1;
    return nearest > now_ms ? (double)(nearest - now_ms) / 1000 : 0;
}

/* --- tickets ------------------------------------------------------------------------------------------- */

struct ticket task_ticket(const struct task *task)
{
    return (struct ticket){ task->vm->sched->worker_id, task->slot, task->seq };
}

struct task *ticket_task(struct sched *sched, struct ticket ticket)
{
    struct task *task = ticket.worker == sched->worker_id ? cell_at(sched, ticket.slot) : NULL;

    if (!task)
        return NULL;
    return task->seq == ticket.seq && task->state != T_ENDED ? task : NULL;
}
