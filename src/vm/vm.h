/* vm/vm.h - one Lua state with its memory bound: the VM of one generation on one worker.
 *
 * LOADING -> CURRENT -> RETIRING -> CLOSING -> CLOSED is told by the floors above (server/reload);
 * here a VM is a Lua state, its tasks and the handles of its userdata. */
#ifndef VM_VM_H
#define VM_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "vm/heap.h"

struct coroutine_pool;
struct err;
struct link;
struct native_list;
struct sched;
struct task;
struct vm;
struct vm_interrupt;

/* What the floors above lend, since vm/ knows neither error objects nor a log. */
struct vm_hooks {
    /* Pushes an error object (bind/lerror.h). NULL: the message as a string. */
    void (*push_error)(lua_State *L, const char *code, const char *message);
    /* An error that nobody asked for: of a defer, a spawned task, a callback. TASK may be NULL.
     * WHAT is a constant phrase, TEXT message and traceback. Touches no Lua stack. NULL: a line in
     * the log. */
    void (*report)(struct vm *vm, struct task *task, const char *what, const char *text);
    /* The last task has ended. In the scheduler's batch: put off what closes the VM. May be NULL. */
    void (*on_drained)(struct vm *vm);
    /* The traceback that vm_interrupt_stack() asked for, from where the code is. Touches no Lua
     * state. NULL: nobody wants it. */
    void (*on_stack)(struct vm *vm, const char *traceback);
};

struct vm_options {
    size_t                 memory_bytes; /* lua_memory: allocation beyond it fails inside Lua */
    const struct vm_hooks *hooks;        /* borrowed; NULL: none */
};

struct vm {
    lua_State             *L;     /* main state; tasks run on coroutines of it */
    struct sched          *sched; /* the worker's scheduler (vm/sched.h); borrowed */
    void                  *env;   /* what the floors above hang here (bind/env.h) */
    const struct vm_hooks *hooks;
    struct list            tasks; /* live tasks of this VM */
    unsigned               task_count;
    struct list            handles; /* struct handle: userdata with a C object behind */
    struct heap            heap;    /* heap.used, heap.max: bytes */
    bool                   revoked; /* quarantined: every C function of ours raises */

    struct task *running; /* a task of this VM that runs now, or NULL */
    lua_State   *resumed; /* the coroutine that the scheduler itself resumed for it */
    struct link *links;   /* user coroutines resumed since, innermost first */

    /* Where the scheduler's protected calls run: a callback of a task may use it, balanced, and keep
     * CO's stack as it is. */
    lua_State             *batch;
    struct coroutine_pool *coroutines; /* finished ones, to be used again */
    struct native_list    *natives;    /* shared objects to unload after lua_close() */
    struct vm_interrupt   *interrupt;  /* vm_interrupt_stack()'s notes */
    size_t                 memory_max;
    bool                   warned; /* of a large heap */
    bool out_of_memory;            /* one was refused: a collection comes before the next task */
};

int vm_open(struct vm **out, struct sched *sched, const struct vm_options *options,
            struct err *err);

/* Ends every task at once: waits are called off, what is held is released, defers do not run. For
 * a VM whose time is up; vm_cancel_tasks() comes first. Loop's turn only. */
void vm_abandon_tasks(struct vm *vm);
/* task_cancel() for each: their defers have 5 s; then hooks->on_drained() comes. */
void vm_cancel_tasks(struct vm *vm, const char *reason);

/* Cuts the handles and parts from scheduler and loop, so that vm_close() may run on another
 * thread. No task may be left. */
void vm_detach(struct vm *vm);
/* lua_close(). Detaches if that was not done. NULL is fine. */
void vm_close(struct vm *vm);

/* The VM of any of its states; a few ns. Works in __gc too, also while the VM closes. */
struct vm *vm_of(lua_State *L);

/* Runs FN(L, arg) protected on a stack of its own: from the loop's turn, where no Lua runs. 0, or an
 * error whose text is the error value's. */
int vm_protect(struct vm *vm, void (*fn)(lua_State *L, void *arg), void *arg, struct err *err);

/* hooks->report(), or a line in the log. */
void vm_report(struct vm *vm, struct task *task, const char *what, const char *text);

/* Before the loop sleeps: adapts the collector to the heap and does a step of at most some 100 us
 * of its work (CORE, decision 14). True: more is to be done, so come back soon when idle. */
bool vm_idle_step(struct vm *vm);
/* A burst is over: the idle steps to come do a whole cycle, though the heap is not large enough to
 * make one due, and spare coroutines go with it. */
void vm_tidy(struct vm *vm);

/* The two-way link of a userdata and its C object (CORE, seam 5): cutting it tells the object. */
struct handle {
    struct list link;
    void (*cut)(struct handle *self); /* the VM goes: close what the object holds */
};
void handle_link(struct handle *handle, struct vm *vm);
void handle_unlink(struct handle *handle); /* idempotent */

/* --- for the watchdog ---------------------------------------------------------------------------- */

/* Asks for a traceback of the Lua code that runs now: hooks->on_stack() gets it at the next
 * instruction. Async-signal-safe, and only from a handler in the thread that runs the VM. Code
 * compiled by a LuaJIT without CHECKHOOK is not reached, nor is a C function. */
void vm_interrupt_stack(struct vm *vm);

#endif
