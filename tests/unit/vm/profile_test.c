#include "vm/profile.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/vm_fixture.h"
#include "vm/profile_store.h"
#include "vm/profile_wait.h"
#include "vm/stop.h"
#include "vm/vm_interrupt.h"

/* --- C functions that are interrupted in known places ---------------------------------------------- */

__attribute__((noinline)) static int deep_in_c(int signal_number)
{
    raise(signal_number);
    return signal_number + 1; /* so that the call above is no jump */
}

__attribute__((noinline)) static int interrupted(lua_State *L)
{
    lua_pushinteger(L, deep_in_c(SIGPROF) + deep_in_c(SIGPROF));
    return 1;
}

/* Calls back, as table.sort() does, but only after it was interrupted. */
static int interrupted_before_callback(lua_State *L)
{
    int answer = deep_in_c(SIGPROF);

    lua_pushvalue(L, 1);
    lua_call(L, 0, 0);
    lua_pushinteger(L, answer);
    return 1;
}

static const struct {
    const char *name;
    const void *address;
} KNOWN[] = {
    { "deep_in_c", (const void *)deep_in_c },
    { "interrupted", (const void *)interrupted },
    { "before_callback", (const void *)interrupted_before_callback },
    { "sleep", (const void *)fixture_sleep },
};

/* --- what was seen, as text ------------------------------------------------------------------------- */

static const char *c_name(uintptr_t address)
{
    for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++)
        if ((uintptr_t)KNOWN[i].address == address)
            return KNOWN[i].name;
    return "?";
}

static int write_frame(char *to, size_t room, const struct profile_frame *frame)
{
    switch (frame->kind) {
    case PROFILE_TASK: return snprintf(to, room, "[%s]", frame->name);
    case PROFILE_LUA:
        return snprintf(to, room, ";%s:%d", frame->name ? frame->name : frame->file + 1,
                        frame->line);
    case PROFILE_BUILTIN: return snprintf(to, room, ";builtin %s", frame->name);
    default: return snprintf(to, room, ";%s", c_name(frame->address));
    }
}

static const char STATES[] = "LJCW";

/* "C [test];f:2;interrupted;deep_in_c" for STACK. */
static void write_stack(char text[1024], const struct profile_stack *stack)
{
    int len = snprintf(text, 1024, "%c ", STATES[stack->state]);

    for (unsigned i = 0; i < stack->depth && len < 900; i++)
        len += write_frame(text + len, 1024 - (size_t)len, stack->frames[i]);
}

/* How often a stack whose text begins with BEGINNING was seen. */
static unsigned long seen(struct profile *profile, const char *beginning)
{
    const struct profile_stack *stack;
    unsigned long               count  = 0;
    size_t                      cursor = 0;

    while ((stack = profile_store_next(profile_seen(profile), &cursor))) {
        char text[1024];

        write_stack(text, stack);
        if (strncmp(text, beginning, strlen(beginning)) == 0)
            count += stack->count;
    }
    return count;
}

static void show(struct profile *profile)
{
    const struct profile_stack *stack;
    size_t                      cursor = 0;

    while ((stack = profile_store_next(profile_seen(profile), &cursor))) {
        char text[1024];

        write_stack(text, stack);
        printf("    %llu %s\n", (unsigned long long)stack->count, text);
    }
}

#define CHECK_SEEN(beginning, times)                                                               \
    do {                                                                                           \
        if (seen(profile, beginning) != (times))                                                   \
            show(profile);                                                                         \
        CHECK_INT((int)seen(profile, beginning), times);                                           \
    } while (0)

/* --- a profile of a fixture ---------------------------------------------------------------------------- */

static struct profile *profile;

static void open_profiled(struct fixture *f)
{
    struct err err;

    fixture_open(f);
    lua_register(f->vm->L, "interrupted", interrupted);
    lua_register(f->vm->L, "before_callback", interrupted_before_callback);
    profile_take_signals();
    CHECK_INT(profile_open(&profile, &err), 0);
    profile_begin(profile, f->sched);
}

static void close_profiled(struct fixture *f)
{
    profile_close(profile);
    fixture_close(f);
}

/* Runs CODE in a turn of the loop, as a worker does, and then ends the profile. */
static void run_profiled(struct fixture *f, const char *code)
{
    char text[2048];

    open_profiled(f);
    snprintf(text, sizeof(text), "sleep(1) %s", code);
    fixture_start(f, text);
    fixture_run(f);
    profile_end(profile);
}

/* --- joined stacks ---------------------------------------------------------------------------------------- */

TEST(c_functions_stand_below_the_line_that_called_them)
{
    struct fixture f;

    run_profiled(&f, "local function work()\n"
                     "  return 1 + interrupted()\n"
                     "end\n"
                     "work()");
    CHECK_SEEN("C [test];app.lua:4;work:2;interrupted;deep_in_c", 2);
    CHECK_INT((int)profile_seen(profile)->samples, 2);
    CHECK_INT((int)profile_seen(profile)->lost, 0);
    close_profiled(&f);
}

TEST(a_generator_stands_below_whoever_resumed_it)
{
    struct fixture f;

    run_profiled(&f, "local step = coroutine.wrap(function()\n"
                     "  interrupted()\n"
                     "  coroutine.yield(1)\n"
                     "end)\n"
                     "step() interrupted()");
    CHECK_INT((int)seen(profile, "C [test];app.lua:5"), 4);
    CHECK_SEEN("C [test];app.lua:5;interrupted;deep_in_c", 2);
    close_profiled(&f);
}

#ifdef SRV_CHECKHOOK /* ours has the symbols by which it is known */
TEST(the_line_that_called_is_told_though_it_is_over)
{
    struct fixture f;

    run_profiled(&f, "local x = interrupted()\n"
                     "local y = 1\n"
                     "interrupted()\n"
                     "local z = 2");
    CHECK_SEEN("C [test];app.lua:1;interrupted;deep_in_c", 2);
    CHECK_SEEN("C [test];app.lua:3;interrupted;deep_in_c", 2);
    close_profiled(&f);
}
#endif

TEST(a_callback_that_has_not_run_yet_is_not_blamed)
{
    struct fixture f;

    run_profiled(&f, "before_callback(function()\n"
                     "  return 1\n"
                     "end)");
    CHECK_SEEN("C [test];app.lua:1;before_callback;deep_in_c", 1);
    close_profiled(&f);
}

TEST(what_the_next_wait_ends_has_the_stack_of_the_wait)
{
    struct fixture f;

    open_profiled(&f);
    fixture_run_lua(f.vm->L, "local sleep, interrupted = sleep, interrupted\n"
                             "work = function() return interrupted() end");
    fixture_start(&f, "sleep(1) local function last() work() end last()");
    fixture_run(&f);
    profile_end(profile);
    CHECK_INT((int)profile_seen(profile)->samples, 2);
    CHECK_INT((int)seen(profile, "C [test]"), 2);
    close_profiled(&f);
}

TEST(no_sample_is_taken_where_the_loop_does_not_run)
{
    struct fixture f;

    open_profiled(&f);
    raise(SIGPROF);
    fixture_start(&f, "interrupted()");
    profile_end(profile);
    raise(SIGPROF);
    CHECK_INT((int)profile_seen(profile)->samples, 0);
    close_profiled(&f);
}

static void interrupt_loop(struct timer *timer)
{
    deep_in_c(SIGPROF);
}

TEST(code_of_the_loop_is_seen_without_a_task)
{
    struct fixture f;
    struct timer   timer;

    open_profiled(&f);
    timer_init(&timer, interrupt_loop);
    timer_start(&timer, f.loop, 1);
    fixture_start(&f, "sleep(20)");
    fixture_run(&f);
    profile_end(profile);
    CHECK_INT((int)profile_seen(profile)->samples, 1);
    CHECK_SEEN("C [test]", 0);
    close_profiled(&f);
}

/* --- hooks ------------------------------------------------------------------------------------------------- */

TEST(the_apps_own_hook_is_back_after_a_sample)
{
    struct fixture f;

    run_profiled(&f, "local lines = 0\n"
                     "debug.sethook(function() lines = lines + 1 end, 'l')\n"
                     "interrupted()\n"
                     "local x = 1\n"
                     "local y = 2\n"
                     "debug.sethook()\n"
                     "return lines >= 2 and 'counted' or lines");
    CHECK_STR(f.text, "counted");
    CHECK_INT((int)profile_seen(profile)->samples, 2);
    close_profiled(&f);
}

static struct sched *stopped_sched;

static int stop_here(lua_State *L)
{
    stop_slice(stopped_sched, sched_slices(stopped_sched), 1);
    raise(SIGPROF);
    return 0;
}

static int sample_and_stop(lua_State *L)
{
    raise(SIGPROF);
    stop_slice(stopped_sched, sched_slices(stopped_sched), 1);
    return 0;
}

TEST(a_slice_is_stopped_whether_it_is_sampled_before_or_after)
{
    static const char *const CODES[] = { "sleep(1) stop_here() while true do end",
                                         "sleep(1) sample_and_stop() while true do end" };

    for (size_t i = 0; i < 2; i++) {
        struct fixture f;

        open_profiled(&f);
        stopped_sched = f.sched;
        lua_register(f.vm->L, "stop_here", stop_here);
        lua_register(f.vm->L, "sample_and_stop", sample_and_stop);
        fixture_run_lua(f.vm->L, "jit.off()");
        fixture_start(&f, CODES[i]);
        fixture_run(&f);
        profile_end(profile);
        CHECK_INT((int)f.cancelled, 1);
        CHECK_INT((int)profile_seen(profile)->samples, 1);
        fixture_start(&f, "return 'usable'");
        CHECK_STR(f.text, "usable");
        close_profiled(&f);
    }
}

static struct vm *asked_vm;

static int stack_then_sample(lua_State *L)
{
    vm_interrupt_stack(asked_vm);
    raise(SIGPROF);
    return 0;
}

static int sample_then_stack(lua_State *L)
{
    raise(SIGPROF);
    vm_interrupt_stack(asked_vm);
    return 0;
}

/* Both want the next instruction, and both have it. */
TEST(a_stack_for_the_watchdog_costs_no_sample_its_lua_lines)
{
    static const char *const CODES[] = { "sleep(1) stack_then_sample() return 'on'",
                                         "sleep(1) sample_then_stack() return 'on'" };

    for (size_t i = 0; i < 2; i++) {
        struct fixture f;

        open_profiled(&f);
        asked_vm = f.vm;
        lua_register(f.vm->L, "stack_then_sample", stack_then_sample);
        lua_register(f.vm->L, "sample_then_stack", sample_then_stack);
        fixture_start(&f, CODES[i]);
        fixture_run(&f);
        profile_end(profile);
        CHECK_STR(f.text, "on");
        CHECK_SEEN("C [test];app.lua:1;", 1);
        close_profiled(&f);
    }
}

/* --- signals at any moment ------------------------------------------------------------------------------------ */

struct shooter {
    pthread_t   target;
    atomic_bool over;
};

static void *shoot(void *arg)
{
    struct shooter *shooter = arg;

    while (!atomic_load(&shooter->over)) {
        pthread_kill(shooter->target, SIGPROF);
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
    return NULL;
}

static void run_under_fire(struct fixture *f, const char *code)
{
    struct shooter shooter = { .target = pthread_self() };
    pthread_t      thread;

#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer delivers no signal while Lua runs");
#endif
    open_profiled(f);
    fixture_start(f, code);
    pthread_create(&thread, NULL, shoot, &shooter);
    fixture_run(f);
    atomic_store(&shooter.over, true);
    pthread_join(thread, NULL);
    profile_end(profile);
}

#ifdef SRV_CHECKHOOK
TEST(a_compiled_loop_is_seen_with_its_line)
{
    struct fixture f;

    run_under_fire(&f, "sleep(1)\n"
                       "local n, clock = 0, os.clock\n"
                       "local until_then = clock() + 0.3\n"
                       "repeat\n"
                       "  for i = 1, 1e6 do\n"
                       "    n = n + i % 7 end\n"
                       "until clock() > until_then\n");
    CHECK(profile_seen(profile)->samples > 20);
    CHECK(seen(profile, "J [test];app.lua:5") + seen(profile, "J [test];app.lua:6") > 20);
    close_profiled(&f);
}
#endif

TEST(everything_goes_on_under_fire)
{
    struct fixture f;

    run_under_fire(&f, "sleep(1)\n"
                       "local clock, t = os.clock, {}\n"
                       "local until_then = clock() + 0.4\n"
                       "local gen = coroutine.wrap(function()\n"
                       "  local i = 0 while true do i = i + 1 coroutine.yield(i) end end)\n"
                       "repeat\n"
                       "  for i = 1, 100 do t[i] = { tostring(gen()) } end\n"
                       "  table.sort(t, function(a, b) return a[1] < b[1] end)\n"
                       "  pcall(error, 'x') sleep(0)\n"
                       "until clock() > until_then\n"
                       "return 'done'");
    CHECK_STR(f.text, "done");
    CHECK(profile_seen(profile)->samples > 20);
    CHECK_INT((int)profile_seen(profile)->lost, 0);
    close_profiled(&f);
}

/* --- its own timer -------------------------------------------------------------------------------------------- */

struct worker {
    pthread_t   thread;
    const char *code;
    double      cpu_s;
    unsigned    samples;
    bool        ticked;
};

static void *work(void *arg)
{
    struct worker  *worker = arg;
    struct fixture  f;
    struct profile *own;
    uint64_t        began;

    fixture_open(&f);
    if (profile_open(&own, NULL) != 0)
        return NULL;
    profile_begin(own, f.sched);
    worker->ticked = profile_tick(own, 1000);
    began          = clock_thread_cpu_ns();
    fixture_start(&f, worker->code);
    fixture_run(&f);
    worker->cpu_s = (double)(clock_thread_cpu_ns() - began) / 1e9;
    profile_end(own);
    worker->samples = (unsigned)profile_seen(own)->samples;
    profile_close(own);
    fixture_close(&f);
    return NULL;
}

TEST(threads_get_samples_by_their_cpu_time_and_a_sleeping_one_none)
{
    static const char BUSY[]     = "sleep(1) local n = 0 for i = 1, 6e8 do n = n + i end";
    struct worker     workers[3] = { { .code = BUSY }, { .code = BUSY }, { .code = "sleep(500)" } };

#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer delivers no signal while Lua runs");
#endif
    profile_take_signals();
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(workers[i].ticked);
        CHECK(workers[i].samples > 500 * workers[i].cpu_s);
        CHECK(workers[i].samples < 1100 * workers[i].cpu_s + 20);
    }
    CHECK(workers[2].samples <= 2); /* but for its own few turns */
}

/* --- waits ------------------------------------------------------------------------------------------------------ */

TEST(a_waiting_task_is_seen_where_it_waits)
{
    struct fixture f;

    open_profiled(&f);
    fixture_start(&f, "local function nap() sleep(1000) end\n"
                      "local gen = coroutine.wrap(function()\n"
                      "  nap() return 1 end)\n"
                      "gen()");
    fixture_run(&f);
    profile_end(profile);
    CHECK(seen(profile, "W [test];app.lua:4;gen:10;?;app.lua:3;nap:1;sleep") >= 2);
    CHECK_INT((int)profile_seen(profile)->stacks.count, 1);
    CHECK_INT((int)profile_seen(profile)->samples, 0);
    close_profiled(&f);
}

TEST(many_waiting_tasks_are_counted_by_some_of_them)
{
    enum { TASKS = 5000 };
    struct fixture f;
    unsigned long  looks;

    open_profiled(&f);
    for (int i = 0; i < TASKS; i++)
        fixture_start(&f, "sleep(300)");
    fixture_start(&f, "local function alone() sleep(200) end alone()");
    fixture_run(&f);
    profile_end(profile);
    looks = seen(profile, "W [test];app.lua:1;sleep") / TASKS;
    CHECK(looks >= 3 && looks <= 30);
    CHECK(profile_seen(profile)->stacks.count <= 4);
    close_profiled(&f);
}

/* --- who may ------------------------------------------------------------------------------------------------------ */

TEST(one_session_at_a_time_claims_all_workers)
{
    CHECK(profile_claim());
    CHECK(!profile_claim());
    profile_release();
    CHECK(profile_claim());
    profile_release();
}

int main(void)
{
    return check_run();
}
