/* vm/vm.h - one Lua state with its memory bound: the VM of one generation on one worker.
 *
 * LOADING -> CURRENT -> RETIRING -> CLOSING -> CLOSED is told by the floors above (server/reload);
 * here a VM is a Lua state, its tasks and the handles of its userdata. */
#ifndef VM_VM_H
#define VM_VM_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

#include "vm/vm_interrupt.h"
#include "vm/vm_state.h"

struct err;
struct sched;

struct vm_options {
    size_t                 memory_bytes; /* lua_memory: allocation beyond it fails inside Lua */
    const struct vm_hooks *hooks;        /* borrowed; NULL: none */
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

/* Runs FN(L, arg) protected on a stack of its own: from the loop's turn, where no Lua runs. 0, or an
 * error whose text is the error value's. */
int vm_protect(struct vm *vm, void (*fn)(lua_State *L, void *arg), void *arg, struct err *err);

/* Before the loop sleeps: adapts the collector to the heap and does a step of at most some 100 us
 * of its work (CORE, decision 14). True: more is to be done, so come back soon when idle. */
bool vm_idle_step(struct vm *vm);
/* A burst is over: the idle steps to come do a whole cycle, though the heap is not large enough to
 * make one due, and spare coroutines go with it. */
void vm_tidy(struct vm *vm);

#endif
