#include "vm/vm_interrupt.h"

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
    free(interrupt);
}

void vm_interrupt_disarm(struct vm_interrupt *interrupt, lua_State *L)
{
    interrupt->armed = 0;
    lua_sethook(L, interrupt->hook, interrupt->mask, interrupt->count);
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

static void tell_stack(lua_State *L, lua_Debug *ar)
{
    struct vm           *vm        = vm_of(L);
    struct vm_interrupt *interrupt = vm->interrupt;
    struct writer        out       = { interrupt->text, sizeof(interrupt->text) };

    vm_interrupt_disarm(interrupt, L);
    write_text(&out, snprintf(out.at, out.room, "stack traceback:"));
    write_stack(&out, L);
    for (const struct link *link = vm->links; link; link = link->outer) {
        write_text(&out, snprintf(out.at, out.room, "\nresumed from:"));
        write_stack(&out, link->resumer);
    }
    if (vm->hooks->on_stack)
        vm->hooks->on_stack(vm, interrupt->text);
}

void vm_interrupt_stack(struct vm *vm)
{
    struct vm_interrupt *interrupt = vm->interrupt;

    if (!vm->running || interrupt->armed)
        return;
    interrupt->hook  = lua_gethook(vm->L);
    interrupt->mask  = lua_gethookmask(vm->L);
    interrupt->count = lua_gethookcount(vm->L);
    interrupt->armed = 1;
    lua_sethook(vm->L, tell_stack, LUA_MASKCOUNT, 1);
}
