/* vm/vm_state.h - a VM as the files of this floor and those above find it: from a lua_State to what
 * belongs to it. vm/vm.h opens and closes it. */
#ifndef VM_VM_STATE_H
#define VM_VM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "vm/heap.h"

struct coroutine_pool;
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
    /* stop_slice() has reached TASK, whose slice has lasted for TOOK_MS; the traceback is of where
     * it was. Amid the app's code: touches no Lua state. May be NULL. */
    void (*on_stop)(struct vm *vm, struct task *task, uint64_t took_ms, const char *traceback);
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
    lua_State   *stopped; /* by stop_slice(), until its resumer has seen it */

    /* Where the scheduler's protected calls run: a callback of a task may use it, balanced, and keep
     * CO's stack as it is. */
    lua_State             *batch;
    struct coroutine_pool *coroutines; /* finished ones, to be used again */
    struct native_list    *natives;    /* shared objects to unload after lua_close() */
    struct vm_interrupt   *interrupt;  /* vm_interrupt_stack()'s notes */
    size_t                 memory_max;
    bool                   warned; /* of a large heap */
    bool     out_of_memory;        /* one was refused: a collection comes before the next task, */
    uint64_t collect_at_ns;        /* but not before this time */
};

/* The VM of any of its states; a few ns. Works in __gc too, also while the VM closes. */
struct vm *vm_of(lua_State *L);

/* hooks->report(), or a line in the log. */
void vm_report(struct vm *vm, struct task *task, const char *what, const char *text);
/* hooks->push_error(), or the message. */
void vm_push_error(lua_State *L, const char *code, const char *message);

/* The two-way link of a userdata and its C object (CORE, seam 5): cutting it tells the object. */
struct handle {
    struct list link;
    void (*cut)(struct handle *self); /* the VM goes: close what the object holds */
};
void handle_link(struct handle *handle, struct vm *vm);
void handle_unlink(struct handle *handle); /* idempotent */

#endif
