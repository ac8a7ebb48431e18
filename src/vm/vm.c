#include "vm/vm.h"

#include <assert.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "vm/coroutine.h"
#include "vm/native.h"
#include "vm/task.h"
#include "vm/task_impl.h"

enum {
    WARN_BYTES   = 64 * 1024 * 1024,
    PRESSURE_PCT = 80, /* of lua_memory: a full collection, then somebody has to go */
};

/* --- life ------------------------------------------------------------------------------------- */

static int run_protected(lua_State *L);

/* Runs protected while the VM is opened: the stack for batches with the functions kept on it. */
static int make_batch(lua_State *L)
{
    struct vm *vm = vm_of(L);

    vm->batch = lua_newthread(L);
    luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(vm->batch, sched_batch);
    lua_pushcfunction(vm->batch, run_protected);
    return 0;
}

static const struct vm_hooks NO_HOOKS;

static bool open_parts(struct vm *vm)
{
    vm->coroutines = coroutine_pool_new();
    vm->interrupt  = vm_interrupt_new();
    vm->natives    = native_list_new();
    vm->L          = heap_open(&vm->heap, vm->memory_max);
    return vm->coroutines && vm->interrupt && vm->natives && vm->L &&
           lua_cpcall(vm->L, make_batch, NULL) == 0;
}

int vm_open(struct vm **out, struct sched *sched, const struct vm_options *options, struct err *err)
{
    struct vm *vm = calloc(1, sizeof(*vm));

    if (!vm)
        return err_set(err, ERR_MEMORY, "Lua state");
    vm->sched      = sched;
    vm->hooks      = options->hooks ? options->hooks : &NO_HOOKS;
    vm->memory_max = options->memory_bytes;
    list_init(&vm->tasks);
    list_init(&vm->handles);
    sched->vm_count++;
    if (!open_parts(vm)) {
        vm_close(vm);
        return err_set(err, ERR_MEMORY, "a Lua state needs more than the %zu bytes of lua_memory",
                       options->memory_bytes);
    }
    *out = vm;
    return 0;
}

void vm_detach(struct vm *vm)
{
    assert(vm->task_count == 0);
    while (!list_is_empty(&vm->handles)) {
        struct handle *handle = container_of(vm->handles.next, struct handle, link);

        list_remove(&handle->link);
        handle->cut(handle);
    }
    if (vm->sched)
        vm->sched->vm_count--;
    vm->sched = NULL;
}

/* Finalizers may run on the pool: they find no scheduler, and so nothing they could wait for. */
void vm_close(struct vm *vm)
{
    if (!vm)
        return;
    if (vm->sched)
        vm_detach(vm);
    if (vm->L)
        heap_close(&vm->heap, vm->L);
    native_list_free(vm->natives);
    vm_interrupt_free(vm->interrupt);
    coroutine_pool_free(vm->coroutines);
    free(vm);
}

/* --- tasks as a whole ----------------------------------------------------------------------------- */

void vm_cancel_tasks(struct vm *vm, const char *reason)
{
    list_each(node, &vm->tasks) task_cancel(container_of(node, struct task, of_vm), reason);
}

static void cut_tasks(struct vm *vm)
{
    list_each(node, &vm->tasks)
    {
        struct task *task = container_of(node, struct task, of_vm);

        task_cut(task, "the app was closed");
        defer_forget(task);
    }
}

/* An ended task's callback may start another, which must go too. */
void vm_abandon_tasks(struct vm *vm)
{
    while (vm->task_count > 0) {
        cut_tasks(vm);
        sched_run_queued(vm->sched);
    }
}

/* --- protected calls ------------------------------------------------------------------------------ */

struct protected_call {
    void (*fn)(lua_State *L, void *arg);
    void *arg;
};

static int run_protected(lua_State *L)
{
    struct protected_call *call = lua_touserdata(L, 1);

    lua_settop(L, 0);
    call->fn(L, call->arg);
    return 0;
}

int vm_protect(struct vm *vm, void (*fn)(lua_State *L, void *arg), void *arg, struct err *err)
{
    struct protected_call call  = { fn, arg };
    lua_State            *batch = vm->batch;
    int                   status;

    sched_hold(vm->sched);
    lua_pushvalue(batch, VM_PROTECT_FUNCTION);
    lua_pushlightuserdata(batch, &call);
    status = lua_pcall(batch, 1, 0, 0);
    sched_let_go(vm->sched);
    if (status != 0)
        err_set(err, status == LUA_ERRMEM ? ERR_MEMORY : ERR_INVALID, "%s",
                lua_type(batch, -1) == LUA_TSTRING ? lua_tostring(batch, -1) : "Lua error");
    lua_settop(batch, VM_BATCH_KEPT);
    return status == 0 ? 0 : status == LUA_ERRMEM ? ERR_MEMORY : ERR_INVALID;
}

/* --- the collector ---------------------------------------------------------------------------------- */

static bool is_under_pressure(const struct vm *vm)
{
    return vm->heap.max != SIZE_MAX && vm->heap.used / PRESSURE_PCT >= vm->heap.max / 100;
}

static struct task *most_grown(struct vm *vm)
{
    struct task *most = NULL;

    list_each(node, &vm->tasks)
    {
        struct task *task = container_of(node, struct task, of_vm);

        if (task->state != T_ENDED && !task->no_cancel && (!most || task->grown > most->grown))
            most = task;
    }
    return most;
}

/* Better one request than all of them: at the bound, whoever allocates next gets the error. */
static void relieve(struct vm *vm, lua_State *L)
{
    struct task *victim;

    lua_gc(L, LUA_GCCOLLECT, 0);
    vm->heap.live = vm->heap.used;
    if (!is_under_pressure(vm))
        return;
    victim = most_grown(vm);
    if (!victim)
        return;
    log_warn("task cancelled for memory", "task=%s task_bytes=%zu lua_bytes=%zu lua_memory=%zu",
             victim->label ? victim->label : "", victim->grown, vm->heap.used, vm->heap.max);
    task_cancel(victim, "memory");
}

static void warn_once(struct vm *vm)
{
    if (vm->warned || vm->heap.used < WARN_BYTES)
        return;
    vm->warned = true;
    log_warn("lua memory is large", "lua_bytes=%zu lua_memory=%zu", vm->heap.used, vm->heap.max);
}

static void collect(lua_State *L, void *arg)
{
    struct vm *vm = vm_of(L);

    warn_once(vm);
    if (unlikely(is_under_pressure(vm)))
        relieve(vm, L);
    if (vm->heap.again)
        coroutine_pool_trim(vm);
    *(bool *)arg = heap_step(&vm->heap, L);
}

static bool has_garbage_work(const struct vm *vm)
{
    return heap_is_due(&vm->heap) || is_under_pressure(vm) ||
           (!vm->warned && vm->heap.used >= WARN_BYTES);
}

void vm_tidy(struct vm *vm)
{
    vm->heap.again = true;
    cell_trim(vm->sched);
}

/* A finalizer that raises would do so in any code that allocates; here it is only told. */
bool vm_idle_step(struct vm *vm)
{
    struct err err;
    bool       more = false;

    if (likely(!has_garbage_work(vm)))
        return false;
    if (vm_protect(vm, collect, &more, &err) != 0)
        vm_report(vm, NULL, "error in a finalizer", err.text);
    return more;
}
