#include "vm/profile.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/symbols.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "vm/profile_lua.h"
#include "vm/profile_native.h"
#include "vm/profile_store.h"
#include "vm/profile_timer.h"
#include "vm/profile_wait.h"
#include "vm/task_impl.h"
#include "vm/vm_interrupt.h"
#include "vm/vm_state.h"

enum {
    MOMENTS_MAX = 256, /* distinct ones that wait for their Lua stack, or for the end of the turn */
    LABEL_BYTES = 96,
};

/* What a signal found, as often as it did. */
struct moment {
    uint64_t            hash, count;
    bool                in_lua; /* below code of the slice that runs */
    struct profile_call call;   /* the line that called; by the next instruction it may be over */
    struct native_stack native;
    char                label[LABEL_BYTES]; /* "": for no task */
};

struct profile {
    struct sched        *sched;
    struct loop_hook     turn;
    struct native_range  thread;
    struct profile_store store;
    struct profile_wait  wait;
    struct timer         look;
    struct profile_timer clock;

    /* Touched by the handler, and by the rest while `is_inside` keeps it away. */
    volatile sig_atomic_t is_inside;
    unsigned              moment_count;
    uint64_t              full; /* samples that found no room here */
    struct moment         moments[MOMENTS_MAX];
    struct moment         taken; /* the handler's, too large for its stack */
    struct profile_lua    lua;
};

static _Thread_local struct profile *here;

static atomic_bool is_claimed;

/* In LuaJIT, by its symbols; of one that has none, all are empty. */
static struct {
    struct native_range call, wrapped_call; /* the interpreter calls a lua_CFunction */
    struct native_range resize;             /* moves a Lua stack */
} places;

static void enter(struct profile *p)
{
    p->is_inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static void leave(struct profile *p)
{
    atomic_signal_fence(memory_order_seq_cst);
    p->is_inside = 0;
}

/* --- filing: a moment becomes a stack ----------------------------------------------------------------- */

struct path {
    unsigned                    depth;
    const struct profile_frame *frames[PROFILE_DEPTH_MAX];
};

static void add(struct path *path, const struct profile_frame *frame)
{
    if (frame && path->depth < PROFILE_DEPTH_MAX)
        path->frames[path->depth++] = frame;
}

static const struct profile_frame *c_frame(struct profile_store *store, uintptr_t address)
{
    struct profile_frame wanted = { .kind = PROFILE_C, .address = address };

    return profile_store_frame(store, &wanted);
}

/* The function, or where its library begins; 0: in no library, so compiled Lua. */
static uintptr_t look_up(uintptr_t address)
{
    Dl_info info;

    if (!dladdr((void *)address, &info))
        return 0;
    return (uintptr_t)(info.dli_saddr ? info.dli_saddr : info.dli_fbase);
}

/* A C function that calls Lua (table.sort) may have been interrupted in C: the next instruction of Lua
 * is then one of its callback, which did not run. */
static void cut_callbacks(struct path *path, const struct profile_frame *c)
{
    unsigned at = path->depth;

    while (at > 0 && path->frames[at - 1] != c)
        at--;
    if (c && at > 0)
        path->depth = at - 1;
}

static enum profile_state add_native(struct path *path, struct profile_store *store,
                                     const struct native_stack *native)
{
    unsigned  known = native->depth - native->ends_unknown;
    uintptr_t end   = native->ends_unknown ? look_up(native->functions[known]) : 0;

    if (known > 0 && !native->ends_unknown)
        cut_callbacks(path, c_frame(store, native->functions[known - 1]));
    if (end)
        add(path, c_frame(store, end));
    for (unsigned i = known; i-- > 0;)
        add(path, c_frame(store, native->functions[i]));
    if (native->place == NATIVE_LUA)
        return PROFILE_IN_LUA;
    return native->place == NATIVE_UNKNOWN && !end ? PROFILE_IN_JIT : PROFILE_IN_C;
}

static void add_label(struct path *path, struct profile_store *store, const char *label)
{
    struct profile_frame wanted = { .kind = PROFILE_TASK, .name = label };

    if (*label)
        add(path, profile_store_frame(store, &wanted));
}

static void add_lua(struct path *path, struct profile *p, const struct profile_call *call)
{
    for (unsigned i = p->lua.depth; i-- > 1;)
        add(path, p->lua.frames[i]);
    if (p->lua.depth > 0)
        add(path, profile_lua_caller(&p->lua, &p->store, call));
}

static void file(struct profile *p, const struct moment *moment)
{
    struct path        path = { 0 };
    enum profile_state state;

    add_label(&path, &p->store, moment->label);
    if (moment->in_lua)
        add_lua(&path, p, &moment->call);
    state = add_native(&path, &p->store, &moment->native);
    profile_store_add(&p->store, state, path.frames, path.depth, moment->count);
}

/* All that wait, the Lua ones below p->lua. */
static void file_all(struct profile *p)
{
    for (unsigned i = 0; i < p->moment_count; i++)
        file(p, &p->moments[i]);
    p->moment_count = 0;
    p->store.lost += p->full;
    p->full = 0;
}

/* --- where Lua runs ------------------------------------------------------------------------------------ */

static void take_stack(lua_State *L, lua_Debug *ar)
{
    struct profile *p  = here;
    struct vm      *vm = vm_of(L);

    if (p)
        enter(p);
    vm_interrupt_disarm(vm->interrupt, L);
    if (!p)
        return;
    profile_lua_running(&p->lua, &p->store, L, vm);
    file_all(p);
    leave(p);
}

/* No hook comes any more. It waits, most often: for what, its stack tells. */
static void on_slice_over(const struct task *task)
{
    struct profile *p = here;

    if (p->moment_count == 0)
        return;
    enter(p);
    profile_lua_waiting(&p->lua, &p->store, task);
    file_all(p);
    leave(p);
}

/* A worker that has no task sleeps on. */
static void look_soon(struct profile *p)
{
    if (p->sched->task_count > 0 && !timer_is_running(&p->look))
        timer_start(&p->look, p->sched->loop, PROFILE_WAIT_MS);
}

static void on_turn(struct loop_hook *hook)
{
    struct profile *p = container_of(hook, struct profile, turn);

    enter(p);
    p->lua.depth = 0;
    file_all(p);
    look_soon(p);
    profile_timer_wake(&p->clock);
    leave(p);
}

static void on_look(struct timer *timer)
{
    struct profile *p = container_of(timer, struct profile, look);

    enter(p);
    profile_wait_look(&p->wait, &p->store, p->sched);
    look_soon(p);
    leave(p);
}

/* --- the signal ------------------------------------------------------------------------------------------ */

static bool is_in(struct native_range range, uintptr_t address)
{
    return address >= range.low && address < range.high;
}

static uint64_t hash_of(const struct moment *moment)
{
    uint64_t hash = (uint64_t)moment->native.depth << 32 ^ (uint64_t)moment->call.line;

    for (unsigned i = 0; i < moment->native.depth; i++)
        hash = (hash ^ moment->native.functions[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

static bool is_same(const struct moment *a, const struct moment *b)
{
    return a->hash == b->hash && a->in_lua == b->in_lua && a->native.place == b->native.place &&
           a->call.source == b->call.source && a->call.line == b->call.line &&
           a->native.depth == b->native.depth &&
           memcmp(a->native.functions, b->native.functions,
                  a->native.depth * sizeof(a->native.functions[0])) == 0 &&
           strcmp(a->label, b->label) == 0;
}

static void keep(struct profile *p)
{
    for (unsigned i = 0; i < p->moment_count; i++) {
        if (is_same(&p->moments[i], &p->taken)) {
            p->moments[i].count++;
            return;
        }
    }
    if (p->moment_count == MOMENTS_MAX)
        p->full++;
    else
        p->moments[p->moment_count++] = p->taken;
}

/* Whose work it is: a task is in hand before it runs and behind, when its answer is made. A label is its
 * generation's and may be gone by the end of the turn. */
static void copy_label(char label[LABEL_BYTES], const struct task *task)
{
    const char *text = task && task->label ? task->label : "";

    strncpy(label, text, LABEL_BYTES - 1);
    label[LABEL_BYTES - 1] = '\0';
}

/* The interpreter has left the Lua stack in order when it calls a lua_CFunction, not when it calls what
 * helps itself. The scheduler's own is none of the task's. */
static bool is_called_by_lua(const struct native_stack *native)
{
    bool called = is_in(places.call, native->caller) || is_in(places.wrapped_call, native->caller);

    if (called && native->functions[native->depth - 1] == (uintptr_t)sched_batch)
        return false;
    for (unsigned i = 0; i < native->depth && called; i++)
        called = !is_in(places.resize, native->functions[i]);
    return called;
}

static lua_State *state_of(const struct vm *vm)
{
    return vm->links ? vm->links->co : vm->resumed;
}

static void take(struct profile *p, const ucontext_t *at)
{
    struct task *running = p->sched->running;

    native_walk(&p->taken.native, at, p->thread);
    copy_label(p->taken.label, running ? running : p->sched->stepped);
    p->taken.in_lua = running != NULL;
    p->taken.call   = (struct profile_call){ 0 };
    if (running && is_called_by_lua(&p->taken.native))
        profile_lua_call(&p->taken.call, state_of(running->vm));
    p->taken.count = 1;
    p->taken.hash  = hash_of(&p->taken);
    keep(p);
    if (running)
        vm_interrupt_arm(running->vm, take_stack, VM_INTERRUPT_SAMPLE);
}

/* What the profiler itself does is nobody's time. */
static bool is_sample(struct profile *p, const siginfo_t *info)
{
    bool at_work = loop_busy_since_ns(p->sched->loop) != 0;

    if (info->si_code == SI_TIMER && !profile_timer_tick(&p->clock, at_work))
        return false;
    return at_work && !p->is_inside;
}

static void on_sigprof(int number, siginfo_t *info, void *context)
{
    struct profile *p      = here;
    int             before = errno;

    if (p && is_sample(p, info))
        take(p, context);
    errno = before;
}

void profile_take_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_sigprof, .sa_flags = SA_RESTART | SA_SIGINFO };

    native_open();
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGURG); /* both set hooks */
    sigaction(SIGPROF, &action, NULL);
}

/* --- life -------------------------------------------------------------------------------------------------- */

static void find_places(void)
{
    struct symbols *symbols = symbols_open();

    if (!symbols)
        return;
    symbols_range(symbols, "lj_BC_FUNCC", &places.call.low, &places.call.high);
    symbols_range(symbols, "lj_BC_FUNCCW", &places.wrapped_call.low, &places.wrapped_call.high);
    if (!symbols_range(symbols, "resizestack", &places.resize.low, &places.resize.high))
        places.call = places.wrapped_call = (struct native_range){ 0, 0 };
    symbols_close(symbols);
}

int profile_open(struct profile **out, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct profile       *p    = calloc(1, sizeof(*p));

    pthread_once(&once, find_places);
    if (!p)
        return err_set(err, ERR_MEMORY, "no memory for a profile");
    profile_store_init(&p->store);
    loop_hook_init(&p->turn, on_turn);
    timer_init(&p->look, on_look);
    *out = p;
    return 0;
}

void profile_close(struct profile *p)
{
    if (!p)
        return;
    profile_store_fini(&p->store);
    free(p);
}

bool profile_claim(void)
{
    return !atomic_exchange(&is_claimed, true);
}

void profile_release(void)
{
    atomic_store(&is_claimed, false);
}

void profile_begin(struct profile *p, struct sched *sched)
{
    if (here)
        return;
    p->sched  = sched;
    p->thread = native_thread_stack();
    loop_on_turn(sched->loop, &p->turn);
    atomic_signal_fence(memory_order_seq_cst);
    here                 = p;
    sched->on_slice_over = on_slice_over;
}

bool profile_tick(struct profile *p, unsigned hz)
{
    return here == p && profile_timer_open(&p->clock, hz);
}

void profile_end(struct profile *p)
{
    if (here != p)
        return;
    profile_timer_close(&p->clock);
    p->sched->on_slice_over = NULL;
    here                    = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    p->lua.depth = 0;
    file_all(p);
    timer_stop(&p->look, p->sched->loop);
    loop_hook_remove(&p->turn);
}

struct profile_store *profile_seen(struct profile *p)
{
    return &p->store;
}
