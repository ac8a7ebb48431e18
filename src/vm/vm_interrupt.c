#include "vm/vm_interrupt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "vm/task_impl.h"
#include "vm/vm_state.h"

enum { LEVELS_MAX = 24 };

struct vm_interrupt *vm_interrupt_new(void)
{
    return calloc(1, sizeof(struct vm_interrupt));
}

void vm_interrupt_free(struct vm_interrupt *interrupt)
{
    while (interrupt && interrupt->reasons) {
        struct stop_reason *reason = interrupt->reasons;

        interrupt->reasons = reason->next;
        free(reason);
    }
    free(interrupt);
}

/* --- the hook ------------------------------------------------------------------------------------ */

/* Off and on again: LuaJIT writes its dispatch table when the mode changes, and a signal amid that
 * may leave a table that does not fit the mode. */
static void set_hook(lua_State *L, lua_Hook hook)
{
    lua_sethook(L, NULL, 0, 0);
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
}

static bool is_set(const struct vm_interrupt *interrupt, lua_State *L)
{
    return interrupt->armed && lua_gethook(L) == interrupt->ours;
}

void vm_interrupt_arm(struct vm *vm, lua_Hook hook, enum vm_interrupt_rank rank)
{
    struct vm_interrupt *interrupt = vm->interrupt;

    if (interrupt->changing)
        return;
    if (interrupt->armed && rank < interrupt->rank) {
        interrupt->after = hook;
        return;
    }
    if (interrupt->armed && rank > interrupt->rank)
        interrupt->after = interrupt->ours;
    if (!is_set(interrupt, vm->L)) {
        interrupt->hook  = lua_gethook(vm->L);
        interrupt->mask  = lua_gethookmask(vm->L);
        interrupt->count = lua_gethookcount(vm->L);
    }
    interrupt->ours  = hook;
    interrupt->rank  = rank;
    interrupt->armed = 1;
    set_hook(vm->L, hook);
}

void vm_interrupt_disarm(struct vm_interrupt *interrupt, lua_State *L)
{
    interrupt->changing = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (is_set(interrupt, L)) { /* else the app has set another meanwhile */
        set_hook(L, interrupt->ours);
        lua_sethook(L, interrupt->hook, interrupt->mask, interrupt->count);
    }
    interrupt->armed = 0;
    interrupt->after = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    interrupt->changing = 0;
}

/* --- the text: written without allocating, since the heap may be what is at its end --------------- */

struct writer {
    char  *at;
    size_t room;
};

static void write_text(struct writer *out, int len)
{
    size_t took = len < 0 ? 0 : (size_t)len < out->room ? (size_t)len : out->room - 1;

    out->at += took;
    out->room -= took;
}

static void write_level(struct writer *out, lua_State *L, lua_Debug *ar)
{
    lua_getinfo(L, "nSl", ar);
    if (*ar->what == 'C')
        write_text(out, snprintf(out->at, out->room, "\n\t[C]: in function '%s'",
                                 ar->name ? ar->name : "?"));
    else if (*ar->what == 'm')
        write_text(out, snprintf(out->at, out->room, "\n\t%s:%d: in main chunk", ar->short_src,
                                 ar->currentline));
    else if (ar->name)
        write_text(out, snprintf(out->at, out->room, "\n\t%s:%d: in function '%s'", ar->short_src,
                                 ar->currentline, ar->name));
    else
        write_text(out, snprintf(out->at, out->room, "\n\t%s:%d: in function <%s:%d>",
                                 ar->short_src, ar->currentline, ar->short_src, ar->linedefined));
}

static void write_stack(struct writer *out, lua_State *L)
{
    lua_Debug ar;

    for (int level = 0; level < LEVELS_MAX && lua_getstack(L, level, &ar); level++)
        write_level(out, L, &ar);
}

void vm_interrupt_write_stack(lua_State *L, struct vm *vm)
{
    struct vm_interrupt *interrupt = vm->interrupt;
    struct writer        out       = { interrupt->text, sizeof(interrupt->text) };

    write_text(&out, snprintf(out.at, out.room, "stack traceback:"));
    write_stack(&out, L);
    for (const struct link *link = vm->links; link; link = link->outer) {
        write_text(&out, snprintf(out.at, out.room, "\nresumed from:"));
        write_stack(&out, link->resumer);
    }
}

static void tell_stack(lua_State *L, lua_Debug *ar)
{
    struct vm *vm    = vm_of(L);
    lua_Hook   after = vm->interrupt->after;

    vm_interrupt_disarm(vm->interrupt, L);
    vm_interrupt_write_stack(L, vm);
    if (vm->hooks->on_stack)
        vm->hooks->on_stack(vm, vm->interrupt->text);
    if (after)
        vm_interrupt_arm(vm, after, VM_INTERRUPT_SAMPLE);
}

void vm_interrupt_stack(struct vm *vm)
{
    if (vm->running)
        vm_interrupt_arm(vm, tell_stack, VM_INTERRUPT_STACK);
}
