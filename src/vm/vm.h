/* vm/vm.h - one Lua state with its memory bound: the VM of one generation on one worker.
 *
 * LOADING -> CURRENT -> RETIRING -> CLOSING -> CLOSED is told by the floors above (server/reload);
 * here a VM is a Lua state, its tasks and the handles of its userdata. */
#ifndef VM_VM_H
#define VM_VM_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

#include "base/list.h"

struct err;
struct sched;

struct vm_options {
    size_t memory_bytes; /* lua_memory: allocation beyond it fails inside Lua */
};

struct vm {
    lua_State    *L;     /* main state; tasks run on coroutines of it */
    struct sched *sched; /* the worker's scheduler (vm/task.h); borrowed */
    void         *env;   /* what the floors above hang here (bind/env.h) */
    struct list   tasks; /* live tasks of this VM */
    unsigned      task_count;
    struct list   handles; /* struct handle: userdata with a C object behind */
    size_t        memory_used;
    size_t        memory_bytes;
    bool          revoked; /* quarantined: every C function of ours raises */
};

int vm_open(struct vm **out, struct sched *sched, const struct vm_options *options,
            struct err *err);
/* No task may be left. Cuts the handles, then lua_close(). May run on another thread after
 * vm_detach(). */
void vm_close(struct vm *vm);
void vm_detach(struct vm *vm);

/* The VM of any of its states; a few ns. */
struct vm *vm_of(lua_State *L);

/* The two-way link of a userdata and its C object (CORE, seam 5): cutting it tells the object. */
struct handle {
    struct list link;
    void (*cut)(struct handle *self); /* the VM goes: close what the object holds */
};

#endif
