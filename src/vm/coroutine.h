/* vm/coroutine.h - the coroutines that tasks run on, and those that apps make inside them.
 *
 * A task's own coroutine takes another function as soon as it has ended well, so a VM keeps the
 * finished ones. Those of the app (generators) may wait inside: coroutine.resume is ours, a C
 * function over lua_resume(). When one of them waits, each resume() on the way up yields too, and
 * the scheduler later resumes the innermost one directly; what that one yields or returns is
 * handed to its resumer. So a wait costs the same at any depth, and because the chain of resumers
 * is known before anything yields, a wait that could not pass raises at its own line.
 *
 * What is suspended in a wait bears a mark on top of its stack, by which resume() refuses it. */
#ifndef VM_COROUTINE_H
#define VM_COROUTINE_H

#include <stdbool.h>

#include <lua.h>

struct coroutine;
struct coroutine_pool;
struct sched;
struct task;
struct vm;

struct coroutine_pool *coroutine_pool_new(void);                         /* NULL: no memory */
void                   coroutine_pool_free(struct coroutine_pool *pool); /* after lua_close() */

/* An empty one, used or new. Raises in L on lack of memory. */
struct coroutine coroutine_take(struct vm *vm, lua_State *L);
/* It has ended well and nobody else knows it. */
void coroutine_give(struct vm *vm, struct coroutine *co);
/* Keeps a few of the finished ones: a burst is over, and each of them holds a page or more. */
void coroutine_pool_trim(struct vm *vm);
/* The collector may have it. */
void coroutine_drop(struct vm *vm, struct coroutine *co);

/* --- user coroutines ------------------------------------------------------------------------------ */

/* NULL: a wait in L would reach the scheduler. Else the state in which a C function that cannot
 * be left and entered again stands between. */
lua_State *coroutine_obstacle(const struct vm *vm, lua_State *L);
/* Whether a wait would be able to pass from L up to its task. */
bool coroutine_reaches_task(lua_State *L);
/* Raises, naming the C function and the way round it. */
int coroutine_raise_obstacle(lua_State *L, lua_State *where);

/* Ends a lua_CFunction: L is suspended with its arguments and the mark. */
int coroutine_suspend(lua_State *L);
/* Notes who resumes whom from TASK's coroutine to the code that runs. False: no memory. */
bool coroutine_note_hops(struct task *task);
/* The state that waits; the mark is taken off, results can be pushed. */
lua_State *coroutine_awaken(struct task *task);
/* The innermost user coroutine, resumed by the scheduler, yielded or ended with STATUS: hands its
 * values on. Returns its resumer and the number of values to resume it with. */
lua_State *coroutine_hand_on(struct task *task, lua_State *from, int status, int *nargs);
/* None of the waiting ones will run again: resume() says that they are dead. */
void coroutine_abandon(struct task *task);
/* Nor will vm->stopped, if there is one. L: any other state, whose stack has room; may raise in it. */
void coroutine_bury_stopped(struct vm *vm, lua_State *L);
void coroutine_free_hops(struct sched *sched); /* the spare ones */

/* Leaves a table on L: resume, step (resume for wrap: nil, message when refused), status, running,
 * yield, can_wait. */
int coroutine_open(lua_State *L);

#endif
