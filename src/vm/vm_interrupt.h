/* vm/vm_interrupt.h - what Lua code runs right now, for the watchdog: a count hook that tells the
 * stack at the next instruction. */
#ifndef VM_VM_INTERRUPT_H
#define VM_VM_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include <lua.h>

struct vm;

/* Of one VM. Written by its thread alone, in a signal handler or out of it. */
struct vm_interrupt {
    volatile sig_atomic_t armed;
    lua_Hook              hook; /* the app's own, while ours stands in its place */
    int                   mask, count;
    char                  text[4096];
};

struct vm_interrupt *vm_interrupt_new(void); /* NULL: no memory */
void                 vm_interrupt_free(struct vm_interrupt *interrupt);

static inline bool vm_interrupt_is_armed(const struct vm_interrupt *interrupt)
{
    return interrupt->armed != 0;
}

/* The slice ended before any instruction ran: the next one is not the one that was asked about. */
void vm_interrupt_disarm(struct vm_interrupt *interrupt, lua_State *L);

/* --- for the watchdog ---------------------------------------------------------------------------- */

/* Asks for a traceback of the Lua code that runs now: hooks->on_stack() gets it at the next
 * instruction. Async-signal-safe, and only from a handler in the thread that runs the VM. Code
 * compiled by a LuaJIT without CHECKHOOK is not reached, nor is a C function. */
void vm_interrupt_stack(struct vm *vm);

#endif
