/* vm/vm_interrupt.h - a hook at the next instruction of the Lua code that runs right now, for the
 * watchdog and the profiler: one that tells the stack is here, one that ends the slice in vm/stop.h,
 * one that takes a sample in vm/profile.h. */
#ifndef VM_VM_INTERRUPT_H
#define VM_VM_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

struct stop_reason;
struct vm;

/* What several want at a time, the last of them has first. */
enum vm_interrupt_rank { VM_INTERRUPT_SAMPLE, VM_INTERRUPT_STACK, VM_INTERRUPT_STOP };

/* Of one VM. Written by its thread alone, in a signal handler or out of it. */
struct vm_interrupt {
    volatile sig_atomic_t  armed;
    volatile sig_atomic_t  changing; /* amid a disarm: what a signal found would be half of it */
    lua_Hook               ours;     /* what is set while armed */
    enum vm_interrupt_rank rank;
    lua_Hook               after; /* of a lower rank: once `ours` has told the stack; NULL: none */
    lua_Hook               hook;  /* the app's own, while ours stands in its place */
    int                    mask, count;

    /* --- stop.c's --- */
    volatile uint64_t   took_ms;    /* what stop_slice() was told last */
    bool                called_off; /* the task of this slice was cancelled */
    struct stop_reason *reasons;    /* made so far, by malloc(): tasks keep a pointer to theirs */
    unsigned            reason_count;

    char text[4096];
};

struct stop_reason {
    struct stop_reason *next;
    char                text[];
};

struct vm_interrupt *vm_interrupt_new(void); /* NULL: no memory */
void                 vm_interrupt_free(struct vm_interrupt *interrupt);

static inline bool vm_interrupt_is_armed(const struct vm_interrupt *interrupt)
{
    return interrupt->armed != 0;
}

/* HOOK is called at each instruction until vm_interrupt_disarm(), unless one of a higher rank is.
 * Async-signal-safe in the VM's own thread, from handlers that do not interrupt each other. Arming
 * again is not in vain: see vm_interrupt.c. */
void vm_interrupt_arm(struct vm *vm, lua_Hook hook, enum vm_interrupt_rank rank);
/* The slice ended, or the hook has done its work: the next instruction is not one that was asked
 * about. */
void vm_interrupt_disarm(struct vm_interrupt *interrupt, lua_State *L);

/* interrupt->text: the traceback of L, through all that wait for it to yield. Allocates nothing. */
void vm_interrupt_write_stack(lua_State *L, struct vm *vm);

/* --- for the watchdog ---------------------------------------------------------------------------- */

/* Asks for a traceback of the Lua code that runs now: hooks->on_stack() gets it at the next
 * instruction. Async-signal-safe, and only from a handler in the thread that runs the VM. Code
 * compiled by a LuaJIT without CHECKHOOK is not reached, nor is a C function. */
void vm_interrupt_stack(struct vm *vm);

#endif
