/* vm/task_impl.h - the inside of tasks and their scheduler, for the files of this floor alone.
 *
 * A task's life: task_new() takes a cell and books it with parent and VM; the scheduler's step()
 * runs it until it waits or is over; settle() lets it answer, cancels what is left of its children
 * and releases what it holds, then comes again until children and defers are gone, calls on_end
 * and gives the cell back. */
#ifndef VM_TASK_IMPL_H
#define VM_TASK_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "vm/task_spec.h"

struct vm;

struct coroutine {
    lua_State *L;   /* NULL: none */
    int        ref; /* anchors it in the registry */
};

/* A resume() in progress; lies on its C stack. */
struct link {
    lua_State   *co, *resumer;
    struct link *outer;
    unsigned     depth;
};

/* A resume() that waits because what it resumed does. Lives until that one yields or ends. */
struct hop {
    lua_State  *co;
    struct hop *outer; /* its resumer's; NULL: the task's own coroutine */
};

/* What the scheduler was doing for a task when an error escaped. */
enum stage {
    STAGE_RUN,    /* making its arguments or results: it ends as raised */
    STAGE_RESULT, /* in on_result */
    STAGE_END,    /* in on_end */
};

enum wake_cause { WAKE_DONE, WAKE_TIMEOUT };

/* Set between task_wait() and the call of push or disarm. */
struct wait {
    void           *op;
    task_disarm_fn  disarm;
    task_push_fn    push;
    task_timeout_fn push_timeout;
    struct timer    timer;
    enum wake_cause cause;
};

struct task {
    struct list  queued;   /* in sched->ready while READY, or ENDED with a step to be done */
    struct list  of_vm;    /* in vm->tasks */
    struct list  sibling;  /* in parent->children */
    struct list  children; /* not settled yet */
    struct list  held;
    struct vm   *vm;
    struct task *parent;
    const char  *label;
    const char  *reason; /* why it was cancelled; NULL: it was not */

    struct coroutine co;
    struct hop      *hops;   /* user coroutines between the wait and CO, innermost first */
    struct coroutine failed; /* after an error: what raised it, the error value on top */

    enum task_state state;
    enum task_end   how;
    bool            loaded;  /* a function and NARGS arguments are on CO: no prepare */
    bool            began;   /* its function was called */
    bool            stopped; /* yielded for good: cancelled while it ran */
    bool            exposed; /* the app knows its coroutine: not for another task */
    bool            no_cancel;
    bool            loads;
    bool            answered;  /* on_result has run */
    bool            closed;    /* children cancelled, what was held released */
    bool            continued; /* task_continue() was called */
    int             nargs;

    struct wait wait;
    _Alignas(8) char op[TASK_OP_BYTES];

    struct limit limit; /* its deadline, when the length is a usual one */
    struct timer deadline;
    uint64_t     due_ms;    /* 0: no deadline */
    uint64_t     length_ms; /* as it was set */

    int (*prepare)(lua_State *co, struct task *task, void *arg);
    task_end_fn on_result, on_end;
    void       *arg;

    int      defers; /* reference to an array of functions, or LUA_NOREF */
    unsigned defer_count;
    size_t   grown; /* bytes the heap grew while it ran */

    uint32_t slot;  /* place in sched->cells, for ever */
    uint32_t seq;   /* of its waits: for tickets */
    uint32_t lives; /* tasks that this cell has been */
};

enum {
    DEFER_TIME_MS       = 5000,
    DEFER_REST_MS       = 1,  /* for those behind one that took it all */
    TASK_CHUNK          = 64, /* cells allocated at once */
    DEADLINE_QUEUES_MAX = 8,
    BEGIN_MAX           = 256, /* some 0.1 ms */
};

struct sched {
    struct loop *loop;
    unsigned     worker_id;

    struct list  ready;    /* woken, or ended with a step to be done */
    struct later later;    /* runs what is ready */
    struct list  batch;    /* what run_ready() took from `ready` */
    bool         in_batch; /* a protected batch runs: what becomes ready waits its turn */

    /* Not begun yet, and only BEGIN_MAX begin in a turn of the loop. */
    struct list  started;     /* by the step in hand */
    struct list  near;        /* in this batch: they begin before those that wait for longer */
    struct list  fresh;       /* in the order of their start */
    unsigned     may_begin;   /* this turn */
    uint64_t     turn;        /* of the loop: which one `may_begin` is for */
    bool         with_old;    /* this batch may run some of `fresh`, */
    bool         old_has_run; /* and one of them has begun */
    struct timer next_turn;   /* some are left: runs the rest */
    struct task *running;
    struct task *stepped; /* the task in hand, running or not */
    enum stage   stage;
    bool         rescuing;  /* a step of `stepped` raised: it comes first */
    lua_State   *raised_in; /* the error value is on top of it */

    struct task **chunks; /* cells by slot: chunks[slot / TASK_CHUNK][slot % TASK_CHUNK]; or NULL */
    unsigned      chunk_count, vacant_chunks;
    uint32_t    first_seq; /* of new cells: no ticket of those that were in their place is theirs */
    struct list free;      /* by task->queued */
    struct hop *free_hops;
    unsigned    task_count;
    unsigned    vm_count;

    struct limit_queue deadlines[DEADLINE_QUEUES_MAX]; /* limit_ms 0: unused */
    void (*on_deadline)(struct task *task);

    _Atomic uint64_t slices;

    void (*on_slice_over)(const struct task *task); /* the profiler's; NULL: nobody has asked */
};

/* --- who calls whom: each of these files knows those before it ------------------------------------- */

/* vm_state.c, trace.c, coroutine.c: see their headers. */

/* deadline.c */
void deadline_open(struct sched *sched, void (*on_deadline)(struct task *task));
void deadline_close(struct sched *sched);
void deadline_init(struct task *task);
void deadline_set(struct task *task, uint64_t delay_ms); /* counts from now, not armed yet */
void deadline_arm(struct task *task);                    /* when it waits for the first time */
void deadline_disarm(struct task *task);

/* cell.c */
void cell_add_chunk(struct sched *sched, timer_fn on_wait_timeout); /* to sched->free */
/* Gives back the chunks of a burst. Not while a task is in hand. */
void         cell_trim(struct sched *sched);
struct task *cell_at(const struct sched *sched,
                     uint32_t            slot); /* used or not; NULL: there is none */

/* task.c */
struct task *task_new(struct vm *vm, const struct task_spec *spec);
/* Its next step comes with the next batch. */
void task_queue(struct task *task);
void task_free(struct task *task);
/* Its wait is over: the op is given back, the timer stopped. */
void task_end_wait(struct task *task);
/* Cancels the children and releases what is held. */
void task_close_scope(struct task *task);
/* task_cancel() that spares nobody: time is up. */
void task_cut(struct task *task, const char *reason);

/* defer.c */
void defer_start(struct task *task); /* in a batch: queues what the ended TASK put off */
void defer_forget(struct task *task);

/* sched.c; task_start() is there too. */
/* From the loop's turn: all that is queued, until nothing is. */
void sched_run_queued(struct sched *sched);
/* In between, what is started is queued: the stack for batches is in use. */
void sched_hold(struct sched *sched);
void sched_let_go(struct sched *sched);
int  sched_batch(lua_State *batch); /* the function kept on vm->batch */

/* vm.c */
enum { VM_BATCH_FUNCTION = 1, VM_PROTECT_FUNCTION = 2, VM_BATCH_KEPT = 2 }; /* on vm->batch */

#endif
