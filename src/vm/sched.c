/* How the ready queue is run: run_ready() comes once a turn and takes all that is ready into a
 * batch. The batch runs inside a lua_pcall() on a stack of the VM's own, kept for that; tasks of
 * one VM that follow each other share it. An error that escapes a step (no memory for the results
 * of a wait, a callback that raised) ends the call but not the batch: rescue() deals with the task
 * that was in hand, and the rest goes on. */
#include "vm/sched.h"

#include <assert.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "vm/coroutine.h"
#include "vm/task.h"
#include "vm/task_impl.h"
#include "vm/trace.h"
#include "vm/vm_interrupt.h"
#include "vm/vm_state.h"

/* --- a slice ------------------------------------------------------------------------------------ */

static void begin_slice(struct sched *sched, struct task *task)
{
    uint64_t slices = atomic_load_explicit(&sched->slices, memory_order_relaxed);

    /* First: a signal meant for the slice before must not find this one under its number. */
    atomic_store_explicit(&sched->slices, slices + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    sched->stage      = STAGE_RUN;
    sched->running    = task;
    task->vm->running = task;
    task->state       = T_RUNNING;
}

static void end_slice(struct sched *sched, struct vm *vm)
{
    sched->running = NULL;
    vm->running    = NULL;
    vm->resumed    = NULL;
    vm->links      = NULL;
    atomic_signal_fence(memory_order_seq_cst); /* from here on no signal arms it */
    if (unlikely(vm_interrupt_is_armed(vm->interrupt)))
        vm_interrupt_disarm(vm->interrupt, vm->L);
}

/* Puts the function with its arguments on the task's coroutine. */
static lua_State *load_function(struct task *task, lua_State *batch, int *nargs)
{
    task->began = true;
    if (!task->co.L)
        task->co = coroutine_take(task->vm, batch);
    task->vm->resumed = task->co.L;
    *nargs            = task->loaded ? task->nargs : task->prepare(task->co.L, task, task->arg);
    return task->co.L;
}

static lua_State *load_results(struct task *task, int *nargs)
{
    struct wait *wait = &task->wait;
    lua_State   *L    = coroutine_awaken(task);

    task->vm->resumed = L;
    if (wait->cause == WAKE_DONE)
        *nargs = wait->push ? wait->push(L, wait->op) : 0;
    else
        *nargs = wait->push_timeout ? wait->push_timeout(L) : 0;
    wait->disarm = NULL;
    return L;
}

/* Resumes innermost coroutine first, then what resumed it, as long as one ends or yields to the
 * next. Returns the status of the task's own, or LUA_YIELD with the task waiting. */
static int resume(struct task *task, lua_State *L, int nargs)
{
    int status;

    for (;;) {
        task->vm->resumed = L;
        status            = lua_resume(L, nargs);
        if (likely(L == task->co.L) || task->state == T_WAITING || task->vm->stopped)
            return status;
        L = coroutine_hand_on(task, L, status, &nargs);
    }
}

/* --- without memory ---------------------------------------------------------------------------------- */

/* An allocation was refused: somebody's end is to be told, which takes a little. */
static void lend_memory(struct vm *vm)
{
    vm->out_of_memory = true;
    heap_lend(&vm->heap);
}

/* LuaJIT does not collect when an allocation fails: what the failed task had would stand in the way of
 * all others until the collector comes by. Where what lives fills the heap, thousands may fail, and one
 * collection each would take minutes: then at most a tenth of the time goes into them. */
static void regain_memory(struct vm *vm, lua_State *batch)
{
    uint64_t began = clock_mono_ns(), ended;

    if (began < vm->collect_at_ns)
        return;
    vm->out_of_memory = false;
    lua_gc(batch, LUA_GCCOLLECT, 0);
    heap_take_back(&vm->heap);
    ended             = clock_mono_ns();
    vm->collect_at_ns = vm->heap.used > vm->heap.max / 10 * 9 ? ended + 9 * (ended - began) : 0;
}

/* --- how it ends ---------------------------------------------------------------------------------- */

/* The error value is on top of FROM. The failed coroutine is kept for its traceback, and a fresh one
 * bears the error, so that whoever deals with it can go on in the same task. */
static void fail(struct task *task, lua_State *batch, lua_State *from)
{
    struct coroutine fresh = coroutine_take(task->vm, batch);

    if (task->failed.L)
        coroutine_drop(task->vm, &task->failed);
    task->failed = task->co;
    task->co     = fresh;
    task->how    = TASK_RAISED;
    if (lua_gettop(from) == 0)
        lua_pushliteral(from, "unknown error");
    lua_pushvalue(from, -1);
    lua_xmove(from, fresh.L, 1);
    if (from == task->failed.L)
        return;
    lua_pushvalue(fresh.L, -1); /* a user coroutine's: the traceback looks for it on the task's */
    lua_xmove(fresh.L, task->failed.L, 1);
}

/* A C module called lua_yield() on the task's own level; coroutine.yield() does not (vm/coroutine.c). */
static void fail_for_yield(struct task *task, lua_State *batch)
{
    lua_State *L = task->co.L;

    lua_checkstack(L, 3);
    trace_push_where(L);
    lua_pushliteral(L, "a C function yielded, and nobody takes that here: it is not in a coroutine "
                       "of coroutine.create or coroutine.wrap");
    lua_concat(L, 2);
    fail(task, batch, L);
}

static void note_end(struct task *task, lua_State *batch, int status)
{
    task->state = T_ENDED;
    if (unlikely(task->reason)) {
        task->how = TASK_CANCELLED;
        coroutine_bury_stopped(task->vm, batch);
        coroutine_abandon(task);
    } else if (likely(status == 0)) {
        task->how = TASK_RETURNED;
    } else if (status == LUA_YIELD) {
        fail_for_yield(task, batch);
    } else {
        if (status == LUA_ERRMEM)
            lend_memory(task->vm);
        fail(task, batch, task->co.L);
    }
}

/* False: it waits. */
static bool run(struct task *task, lua_State *batch)
{
    struct sched *sched  = task->vm->sched;
    size_t        before = task->vm->heap.used;
    lua_State    *L;
    int           nargs, status;

    begin_slice(sched, task);
    L      = likely(!task->began) ? load_function(task, batch, &nargs) : load_results(task, &nargs);
    status = resume(task, L, nargs);
    end_slice(sched, task->vm);
    if (unlikely(sched->on_slice_over))
        sched->on_slice_over(task);
    task->grown += task->vm->heap.used - before;
    if (status == LUA_YIELD && task->state == T_WAITING && !task->stopped) {
        deadline_arm(task);
        return false;
    }
    note_end(task, batch, status);
    return true;
}

/* --- after the end -------------------------------------------------------------------------------- */

static lua_State *result_state(const struct task *task)
{
    return task->how == TASK_CANCELLED ? NULL : task->co.L;
}

/* The callback went on with task_continue(): there is another function to run. */
static bool takes_up_again(struct task *task)
{
    if (likely(!task->continued))
        return false;
    task->continued = false;
    task->closed    = false;
    task->state     = T_READY;
    return true;
}

static bool answer(struct task *task)
{
    task->answered = true;
    if (!task->on_result)
        return false;
    task->vm->sched->stage = STAGE_RESULT;
    task->on_result(task, task->how, result_state(task), task->arg);
    return takes_up_again(task);
}

static bool report_end(struct task *task)
{
    task_end_fn on_end = task->on_end;

    task->on_end = NULL;
    if (!on_end)
        return false;
    task->vm->sched->stage = STAGE_END;
    on_end(task, task->how, task->on_result ? NULL : result_state(task), task->arg);
    return takes_up_again(task);
}

/* Does what the ended task's scope still needs, as far as it can now. True: it runs again. */
static bool settle(struct task *task)
{
    if (!task->answered && answer(task))
        return true;
    if (!task->closed)
        task_close_scope(task);
    if (!list_is_empty(&task->children))
        return false; /* the last of them queues us again */
    if (unlikely(task->defer_count > 0)) {
        defer_start(task);
        return false;
    }
    if (report_end(task))
        return true;
    task_free(task);
    return false;
}

static void step(struct sched *sched, struct task *task, lua_State *batch)
{
    sched->stepped = task;
    do {
        if (task->state == T_READY && !run(task, batch))
            break;
    } while (unlikely(settle(task)));
    sched->stepped = NULL;
}

/* --- batches ---------------------------------------------------------------------------------------- */

static const char *message_on(lua_State *L)
{
    bool has = L && lua_gettop(L) > 0 && lua_type(L, -1) == LUA_TSTRING;

    return has ? lua_tostring(L, -1) : "an error without a message";
}

/* What an escaped error left behind. */
static void rescue(struct sched *sched, lua_State *batch)
{
    struct task *task = sched->stepped;
    lua_State   *from = sched->raised_in;

    if (sched->stage != STAGE_RUN) {
        vm_report(task->vm, task,
                  sched->stage == STAGE_RESULT ? "error in on_result" : "error in on_end",
                  message_on(from));
    } else {
        task_end_wait(task);
        task->state = T_ENDED;
        coroutine_abandon(task);
        fail(task, batch, from);
    }
    sched->rescuing = false;
    step(sched, task, batch);
}

/* --- whose turn it is --------------------------------------------------------------------------------- */

static struct task *first_of(const struct list *tasks)
{
    return list_is_empty(tasks) ? NULL : container_of(tasks->next, struct task, queued);
}

static void renew_budget(struct sched *sched)
{
    uint64_t turn = loop_turns(sched->loop);

    if (sched->turn == turn)
        return;
    sched->turn      = turn;
    sched->may_begin = BEGIN_MAX;
}

static struct task *next_new(struct sched *sched)
{
    struct task *near = first_of(&sched->near);
    struct task *old  = sched->with_old ? first_of(&sched->fresh) : NULL;

    renew_budget(sched);
    if (sched->may_begin == 0)
        return NULL;
    return near && (sched->old_has_run || !old) ? near : old;
}

/* What is under way goes on before anything begins, and what a task starts begins right after it,
 * before what has waited for longer: of a thousand tasks with twenty-five children each a few hundred
 * are under way at a time, not twenty-six thousand. Yet the oldest has its turn in each batch. */
static struct task *next_task(struct sched *sched)
{
    if (!list_is_empty(&sched->batch))
        return first_of(&sched->batch);
    if (likely(list_is_empty(&sched->near) && !sched->with_old))
        return NULL;
    return next_new(sched);
}

static bool is_new(const struct task *task)
{
    return task->state == T_READY && !task->began;
}

/* Of `near` or `fresh`. */
static void count_begin(struct sched *sched, const struct task *task)
{
    sched->old_has_run |= task == first_of(&sched->fresh);
    sched->may_begin--;
}

/* What the step has started. */
static void put_near(struct sched *sched, bool first)
{
    if (first)
        list_splice(&sched->started, &sched->near);
    list_splice(&sched->near, &sched->started);
}

static void run_task(struct sched *sched, struct task *task, lua_State *batch)
{
    bool begins = is_new(task);

    if (list_is_empty(&sched->batch))
        count_begin(sched, task);
    list_remove(&task->queued);
    step(sched, task, batch);
    if (unlikely(!list_is_empty(&sched->started)))
        put_near(sched, begins);
}

int sched_batch(lua_State *batch)
{
    struct vm    *vm    = vm_of(batch);
    struct sched *sched = vm->sched;
    struct task  *task;

    if (unlikely(sched->rescuing))
        rescue(sched, batch);
    while ((task = next_task(sched)) && task->vm == vm) {
        if (unlikely(vm->out_of_memory))
            regain_memory(vm, batch);
        run_task(sched, task, batch);
    }
    if (unlikely(vm->out_of_memory))
        regain_memory(vm, batch);
    heap_adapt(&vm->heap, batch);
    return 0;
}

/* No memory even for telling of the error: the task ends as if cancelled. */
static void give_up(struct sched *sched)
{
    struct task *task = sched->stepped;

    sched->rescuing = false;
    task->reason    = "memory";
    task->how       = TASK_CANCELLED;
    task->state     = T_ENDED;
    list_prepend(&sched->batch, &task->queued);
}

/* Where the callback that raised had its values: errors are raised in the state it was given. */
static lua_State *state_in_hand(struct sched *sched)
{
    struct task *task = sched->stepped;

    return sched->stage == STAGE_RUN && task->vm->resumed ? task->vm->resumed : task->co.L;
}

/* An error has left the batch. Whose it is decides who pays. */
static void take_error(struct sched *sched, struct vm *vm, int status)
{
    if (!sched->stepped) { /* between two tasks only the collector runs code of the app's */
        vm_report(vm, NULL, "error in a finalizer", message_on(vm->batch));
        return;
    }
    if (status == LUA_ERRMEM)
        lend_memory(vm);
    sched->raised_in = state_in_hand(sched);
    end_slice(sched, vm);
    vm->stopped = NULL;
    if (sched->rescuing || (sched->stage == STAGE_RUN && !sched->raised_in))
        give_up(sched);
    else
        sched->rescuing = true;
}

static void run_batch(struct sched *sched, struct vm *vm)
{
    int status;

    lua_pushvalue(vm->batch, VM_BATCH_FUNCTION);
    status = lua_pcall(vm->batch, 0, 0, 0);
    if (likely(status == 0))
        return;
    take_error(sched, vm, status);
    lua_settop(vm->batch, VM_BATCH_KEPT);
}

void sched_hold(struct sched *sched)
{
    assert(!sched->in_batch);
    sched->in_batch = true;
}

/* Asks for the rest of this turn, or for the next one when no more may begin in this. */
static void ask_for_turn(struct sched *sched)
{
    if (!list_is_empty(&sched->ready) || !list_is_empty(&sched->started))
        loop_later(sched->loop, &sched->later);
    if (list_is_empty(&sched->fresh))
        return;
    if (sched->may_begin > 0)
        loop_later(sched->loop, &sched->later);
    else if (!timer_is_running(&sched->next_turn))
        timer_start(&sched->next_turn, sched->loop, 0);
}

void sched_let_go(struct sched *sched)
{
    sched->in_batch = false;
    ask_for_turn(sched);
}

static void run_batches(struct sched *sched, bool with_old)
{
    struct task *task;

    sched_hold(sched);
    sched->with_old    = with_old;
    sched->old_has_run = false;
    while ((task = sched->rescuing ? sched->stepped : next_task(sched)))
        run_batch(sched, task->vm);
    list_splice(&sched->fresh, &sched->near);
    sched_let_go(sched);
}

static void run_ready(struct later *later)
{
    struct sched *sched = container_of(later, struct sched, later);

    list_splice(&sched->batch, &sched->ready);
    list_splice(&sched->fresh, &sched->started);
    run_batches(sched, true);
}

static void on_next_turn(struct timer *timer)
{
    struct sched *sched = container_of(timer, struct sched, next_turn);

    run_ready(&sched->later);
}

struct task *task_start(struct vm *vm, const struct task_spec *spec)
{
    struct sched *sched = vm->sched;
    struct task  *task  = task_new(vm, spec);
    uint32_t      lives = task->lives;

    if (sched->in_batch || sched->running) {
        task_queue(task);
        return task;
    }
    list_append(&sched->batch, &task->queued);
    run_batches(sched, false);
    return task->lives == lives ? task : NULL;
}

static bool has_queued(const struct sched *sched)
{
    return !list_is_empty(&sched->ready) || !list_is_empty(&sched->started) ||
           !list_is_empty(&sched->fresh);
}

void sched_run_queued(struct sched *sched)
{
    while (has_queued(sched)) {
        sched->turn      = loop_turns(sched->loop);
        sched->may_begin = BEGIN_MAX;
        run_ready(&sched->later);
    }
}

/* --- life ------------------------------------------------------------------------------------------- */

static void on_deadline(struct task *task)
{
    task_cut(task, "deadline");
}

int sched_open(struct sched **out, struct loop *loop, unsigned worker_id, struct err *err)
{
    struct sched *sched = calloc(1, sizeof(*sched));

    if (!sched)
        return err_set(err, ERR_MEMORY, "scheduler");
    sched->loop      = loop;
    sched->worker_id = worker_id;
    list_init(&sched->ready);
    list_init(&sched->batch);
    list_init(&sched->started);
    list_init(&sched->near);
    list_init(&sched->fresh);
    list_init(&sched->free);
    later_init(&sched->later, run_ready);
    timer_init(&sched->next_turn, on_next_turn);
    sched->may_begin = BEGIN_MAX;
    deadline_open(sched, on_deadline);
    *out = sched;
    return 0;
}

void sched_close(struct sched *sched)
{
    if (!sched)
        return;
    assert(sched->vm_count == 0 && sched->task_count == 0);
    later_cancel(&sched->later);
    timer_stop(&sched->next_turn, sched->loop);
    deadline_close(sched);
    coroutine_free_hops(sched);
    for (unsigned i = 0; i < sched->chunk_count; i++)
        free(sched->chunks[i]);
    free(sched->chunks);
    free(sched);
}

struct task *sched_running(const struct sched *sched)
{
    return sched->running;
}

uint64_t sched_slices(const struct sched *sched)
{
    return atomic_load_explicit(&sched->slices, memory_order_relaxed);
}

unsigned sched_task_count(const struct sched *sched)
{
    return sched->task_count;
}
