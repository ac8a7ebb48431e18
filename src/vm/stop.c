#include "vm/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lua.h>

#include "base/compiler.h"
#include "vm/task.h"
#include "vm/task_impl.h"
#include "vm/trace.h"
#include "vm/vm_interrupt.h"
#include "vm/vm_state.h"

enum { REASONS_MAX = 256 }; /* lines of an app at which slices were stopped */

/* --- why ----------------------------------------------------------------------------------------- */

static const char NO_PLACE[] = "ran longer than slice_limit";

static bool find_place(lua_State *L, const struct vm *vm, lua_Debug *ar)
{
    bool found = trace_find_place(L, 0, ar);

    for (const struct link *link = vm->links; link && !found; link = link->outer)
        found = trace_find_place(link->resumer, 0, ar);
    return found;
}

static struct stop_reason *find_reason(const struct vm_interrupt *interrupt, const char *text)
{
    struct stop_reason *reason = interrupt->reasons;

    while (reason && strcmp(reason->text, text) != 0)
        reason = reason->next;
    return reason;
}

/* TEXT as long as the VM lives, for a reason is a pointer that others keep. */
static const char *keep_reason(struct vm_interrupt *interrupt, const char *text)
{
    struct stop_reason *reason = find_reason(interrupt, text);
    size_t              bytes  = strlen(text) + 1;

    if (reason)
        return reason->text;
    if (interrupt->reason_count == REASONS_MAX)
        return NO_PLACE;
    reason = malloc(sizeof(*reason) + bytes);
    if (!reason)
        return NO_PLACE;
    memcpy(reason->text, text, bytes);
    reason->next       = interrupt->reasons;
    interrupt->reasons = reason;
    interrupt->reason_count++;
    return reason->text;
}

static const char *reason_at(lua_State *L, struct vm *vm)
{
    char      text[LUA_IDSIZE + sizeof(NO_PLACE) + 16];
    lua_Debug ar;

    if (!find_place(L, vm, &ar))
        return NO_PLACE;
    snprintf(text, sizeof(text), "%s:%d: %s", ar.short_src, ar.currentline, NO_PLACE);
    return keep_reason(vm->interrupt, text);
}

/* --- the hook ------------------------------------------------------------------------------------ */

/* Once for a slice: children end and what is held is free, however long the code itself takes. */
static void call_off(lua_State *L, struct vm *vm)
{
    struct vm_interrupt *interrupt = vm->interrupt;

    interrupt->called_off = true;
    vm_interrupt_write_stack(L, vm);
    task_cut(vm->running, reason_at(L, vm));
    if (vm->hooks->on_stop)
        vm->hooks->on_stop(vm, vm->running, interrupt->took_ms, interrupt->text);
}

static int yield_nothing(lua_State *L)
{
    return lua_yield(L, 0);
}

/* An error raised in a hook calls the handler of xpcall with hooks off, which may loop for ever, and
 * one that load() catches leaves them off. LuaJIT turns them on when a hook yields, so one does, in
 * a coroutine that is never heard of again. */
static void turn_hooks_on(lua_State *L)
{
    lua_State *co = lua_newthread(L);

    lua_pushcfunction(co, yield_nothing);
    lua_resume(co, 0);
    lua_pop(L, 1);
}

static void stop(lua_State *L, lua_Debug *ar)
{
    struct vm *vm = vm_of(L);

    if (!vm->interrupt->called_off)
        call_off(L, vm);
    if (lua_isyieldable(L)) {
        vm->stopped = L;
        lua_yield(L, 0); /* from a hook it leaves at once */
    } else {
        vm_push_error(L, "cancelled", vm->running->reason);
        turn_hooks_on(L);
        lua_error(L);
    }
}

void stop_slice(struct sched *sched, uint64_t slice, uint64_t took_ms)
{
    struct task         *task = sched->running;
    struct vm_interrupt *interrupt;

    if (!task || atomic_load_explicit(&sched->slices, memory_order_relaxed) != slice)
        return;
    interrupt = task->vm->interrupt;
    if (!interrupt->armed || interrupt->ours != stop)
        interrupt->called_off = false;
    interrupt->took_ms = took_ms;
    vm_interrupt_arm(task->vm, stop, VM_INTERRUPT_STOP);
}
