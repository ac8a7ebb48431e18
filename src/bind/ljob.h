/* bind/ljob.h - a call of Lua's that is done on a lane of the pool while its task waits.
 *
 * The job is memory of its own with its inputs copied in, since it may outlive the task that asked,
 * and the VM: whoever has the last word, the wait or the job, gives it back by free(). */
#ifndef BIND_LJOB_H
#define BIND_LJOB_H

#include <stdbool.h>

#include <lua.h>

#include "ev/pool.h"

struct task;

struct ljob {
    struct job   job;      /* private */
    struct task *waiter;   /* for push(); NULL when nobody waits any more */
    bool         finished; /* private */

    /* On a thread of the pool, unless the wait was called off before. */
    void (*work)(struct ljob *job);
    /* The results of the call, as a task_push_fn: protected, may raise. */
    int (*push)(lua_State *L, struct ljob *job);
    /* Once, on any thread. */
    void (*free)(struct ljob *job);
    /* The wait is called off, on the VM's thread, before free() and maybe amid work(); may be NULL. */
    void (*on_off)(struct ljob *job);
};

/* `return ljob_start(L, job, lane);` ends a lua_CFunction: waits, then gives what push() makes. Takes
 * JOB, of which work, push and free are set and the rest is zeroed. nil, err (`busy`) when the lane
 * is full. */
int ljob_start(lua_State *L, struct ljob *job, struct lane *lane);

/* Work that nobody waits for: work(), then free(). It is done even when the pool closes first, and at
 * once where there is no room on the lane. */
void ljob_run_alone(struct ljob *job, struct lane *lane, struct inbox *home);

/* Zeroed memory of BYTES, for free(); raises where there is none, and outside of a task. From here to
 * ljob_start() nothing may raise. */
void *ljob_new(lua_State *L, size_t bytes);

#endif
