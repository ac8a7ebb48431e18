/* vm/profile_native.h - which C functions stand on the stack that a signal has interrupted.
 *
 * Read from the unwind tables (.eh_frame) that every object carries, so nothing has to be compiled
 * in a special way and libraries are seen through. For x86-64; elsewhere the innermost function is
 * all there is. */
#ifndef VM_PROFILE_NATIVE_H
#define VM_PROFILE_NATIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Once for the process, before anything is opened by dlopen(): what is loaded by now stays for ever, so
 * its tables may be read at any time. Of what comes later, and of compiled Lua, only the address
 * is known. */
void native_open(void);

struct native_range {
    uintptr_t low, high;
};

/* Of the calling thread. */
struct native_range native_thread_stack(void);

enum native_place {
    NATIVE_C,       /* in a C function */
    NATIVE_LUA,     /* in LuaJIT's interpreter, which is no C: the walk ends there */
    NATIVE_UNKNOWN, /* in no object of native_open()'s: which is all that is known */
};

enum { NATIVE_DEPTH_MAX = 36 }; /* the outermost are left out */

struct native_stack {
    enum native_place place;        /* the innermost */
    bool              ends_unknown; /* the outermost is an address in an unknown place */
    uintptr_t         caller; /* in the interpreter, where it called the outermost; 0: it did not */
    unsigned          depth;
    uintptr_t         functions[NATIVE_DEPTH_MAX]; /* innermost first, by their first addresses */
};

/* The functions that AT stands in, up to LuaJIT's interpreter, which is not among them, or to an
 * unknown place. THREAD is native_thread_stack() of the thread. Async-signal-safe. */
void native_walk(struct native_stack *stack, const ucontext_t *at, struct native_range thread);

#endif
