#include "vm/stop.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "support/runaway.h"

enum { STOP_MS = 100 };

#ifdef __SANITIZE_THREAD__
#define NEEDS_SIGNALS() SKIP("ThreadSanitizer delivers no signal while Lua runs")
#else
#define NEEDS_SIGNALS() ((void)0)
#endif

/* --- a VM, its stopper, and what it hears -------------------------------------------------------- */

struct stand {
    struct fixture  f;
    struct stopper  stopper;
    struct vm_hooks hooks;
    unsigned        stops; /* on_stop() */
    uint64_t        took_ms;
    char            stack[4096];
};

static struct stand *stand_in_use;

static void on_stop(struct vm *vm, struct task *task, uint64_t took_ms, const char *traceback)
{
    stand_in_use->stops++;
    stand_in_use->took_ms = took_ms;
    snprintf(stand_in_use->stack, sizeof(stand_in_use->stack), "%s", traceback);
}

/* defer(fn) */
static int defer(lua_State *L)
{
    task_defer(L, 1);
    return 0;
}

/* stop_this(): at the next instruction */
static int stop_this(lua_State *L)
{
    struct sched *sched = vm_of(L)->sched;

    stop_slice(sched, sched_slices(sched), 1);
    return 0;
}

/* On the heap: the stopper of a test that failed stays where it is. */
static struct stand *stand_open(void)
{
    struct stand *s = calloc(1, sizeof(*s));

    stand_in_use = s;
    fixture_open(&s->f);
    s->hooks         = *s->f.vm->hooks;
    s->hooks.on_stop = on_stop;
    s->f.vm->hooks   = &s->hooks;
    lua_register(s->f.vm->L, "defer", defer);
    lua_register(s->f.vm->L, "stop_this", stop_this);
    fixture_run_lua(s->f.vm->L, RUNAWAY_CANARY);
    stopper_open(&s->stopper, &s->f);
    return s;
}

static void stand_close(struct stand *s)
{
    stopper_close(&s->stopper);
    fixture_close(&s->f);
    free(s);
}

/* Runs CODE to its end. */
static void run(struct stand *s, const char *code)
{
    fixture_start(&s->f, code);
    fixture_run(&s->f);
}

static void check_result(struct stand *s, const char *code, const char *want)
{
    run(s, code);
    CHECK_STR(s->f.text, want);
}

static void check_usable(struct stand *s)
{
    lua_gc(s->f.vm->L, LUA_GCCOLLECT, 0);
    check_result(s, RUNAWAY_CHECK, "usable");
    lua_gc(s->f.vm->L, LUA_GCCOLLECT, 0);
}

/* --- every kind ------------------------------------------------------------------------------------ */

static void check_stopped(struct stand *s, const struct runaway *runaway)
{
    unsigned before = s->f.cancelled;
    uint64_t took   = stopper_run(&s->stopper, &s->f, runaway->code);

    if (s->f.cancelled != before + 1 || took > STOP_MS * (uint64_t)NS_PER_MS)
        fprintf(stderr, "%s: %.1f ms, %s\n", runaway->name, (double)took / NS_PER_MS, s->f.text);
    CHECK_INT(s->f.cancelled, before + 1);
    CHECK(took <= STOP_MS * (uint64_t)NS_PER_MS);
    CHECK(strstr(s->f.text, ": ran longer than slice_limit"));
    check_usable(s);
}

static void check_all_stopped(const struct runaway *runaways, size_t count)
{
    struct stand *s = stand_open();

    s->stopper.delay_us = 3000; /* compiled by then */
    for (size_t i = 0; i < count; i++)
        check_stopped(s, &runaways[i]);
    CHECK_INT(s->stops, count);
    stand_close(s);
}

TEST(loops_of_interpreted_code_are_stopped)
{
    NEEDS_SIGNALS();
    check_all_stopped(INTERPRETED, ARRAY_LEN(INTERPRETED));
}

#ifdef SRV_CHECKHOOK
TEST(every_kind_of_endless_code_is_stopped_and_the_state_stays_usable)
{
    NEEDS_SIGNALS();
    check_all_stopped(RUNAWAYS, ARRAY_LEN(RUNAWAYS));
}
#endif

/* --- what is told ---------------------------------------------------------------------------------- */

TEST(the_place_the_stack_and_the_time_are_told)
{
    struct stand *s = stand_open();

    run(s, "local function grind()\n"
           "  stop_this() while true do end\n"
           "end\n"
           "coroutine.wrap(function() grind() end)()");
    CHECK_STR(s->f.text, "app.lua:2: ran longer than slice_limit");
    CHECK(strstr(s->stack, "in function 'grind'"));
    CHECK(strstr(s->stack, "resumed from:"));
    CHECK(strstr(s->stack, "app.lua:4:"));
    CHECK_INT(s->took_ms, 1);
    CHECK_INT(s->stops, 1);
    stand_close(s);
}

/* --- how it ends ----------------------------------------------------------------------------------- */

TEST(defers_run_with_the_cause)
{
    struct stand *s = stand_open();

    run(s, "defer(function(err) cause = err end)\n"
           "stop_this() while true do end");
    check_result(s, "return cause", "cancelled: app.lua:2: ran longer than slice_limit");
    check_usable(s);
    stand_close(s);
}

TEST(a_defer_that_does_not_end_is_stopped_too)
{
    struct stand *s = stand_open();

    run(s, "defer(function() stop_this() while true do end end)");
    CHECK_INT(s->f.returned, 1);
    CHECK(strstr(s->f.report, "a defer was cut off: app.lua:1:"));
    check_usable(s);
    stand_close(s);
}

TEST(coroutines_that_were_stopped_are_dead)
{
    struct stand *s = stand_open();

    run(s, "own = coroutine.running()\n"
           "inner = coroutine.create(function() stop_this() while true do end end)\n"
           "outer = coroutine.create(function() coroutine.resume(inner) end)\n"
           "coroutine.resume(outer)");
    check_result(s,
                 "local told = {}\n"
                 "for i, co in ipairs { own, outer, inner } do\n"
                 "  assert(coroutine.status(co) == 'dead')\n"
                 "  local ok, why = coroutine.resume(co)\n"
                 "  assert(not ok and why == 'cannot resume dead coroutine')\n"
                 "end\n"
                 "return 'all dead'",
                 "all dead");
    check_usable(s);
    stand_close(s);
}

TEST(a_generator_stopped_after_its_wait_is_dead)
{
    struct stand *s = stand_open();

    run(s, "inner = coroutine.create(function() sleep(1) stop_this() while true do end end)\n"
           "outer = coroutine.create(function() coroutine.resume(inner) end)\n"
           "coroutine.resume(outer)");
    check_result(s, "return coroutine.status(inner) .. ' ' .. coroutine.status(outer)",
                 "dead dead");
    check_usable(s);
    stand_close(s);
}

TEST(other_tasks_of_the_state_go_on)
{
    struct stand *s = stand_open();

    for (int i = 0; i < 10; i++)
        fixture_start(&s->f, "local gen = coroutine.wrap(function() sleep(20) return 'done' end)\n"
                             "return gen()");
    run(s, "stop_this() while true do end");
    CHECK_INT(s->f.cancelled, 1);
    CHECK_INT(s->f.returned, 10);
    stand_close(s);
}

/* stop_other(): as a signal that comes too late, for the slice before */
static int stop_other(lua_State *L)
{
    struct sched *sched = vm_of(L)->sched;

    stop_slice(sched, sched_slices(sched) - 1, 1);
    return 0;
}

TEST(a_signal_for_another_slice_stops_nobody)
{
    struct stand *s = stand_open();

    lua_register(s->f.vm->L, "stop_other", stop_other);
    check_result(s, "sleep(0) stop_other() local x = 1 return 'unharmed'", "unharmed");
    stop_slice(s->f.sched, sched_slices(s->f.sched), 1); /* and none runs */
    check_result(s, "return 'unharmed'", "unharmed");
    CHECK_INT(s->stops, 0);
    stand_close(s);
}

TEST(a_slice_that_ends_by_itself_takes_the_hook_with_it)
{
    struct stand *s = stand_open();

    check_result(s, "return stop_this()", "");
    CHECK_INT(s->stops, 0);
    check_usable(s);
    stand_close(s);
}

TEST(the_apps_own_hook_is_back_after_a_stop)
{
    struct stand *s = stand_open();

    run(s, "lines = 0\n"
           "debug.sethook(function() lines = lines + 1 end, 'l')\n"
           "stop_this()\n"
           "while true do end");
    CHECK_INT(s->f.cancelled, 1);
    check_result(s,
                 "local before = lines\n"
                 "local x = 1\n"
                 "local y = 2\n"
                 "debug.sethook()\n"
                 "return lines >= before + 2 and 'counted' or before .. ' ' .. lines",
                 "counted");
    check_usable(s);
    stand_close(s);
}

TEST(an_error_at_the_end_of_memory_does_not_save_a_slice)
{
    struct stand *s;

    NEEDS_SIGNALS();
    s = stand_open();
    stopper_run(
        &s->stopper, &s->f,
        "jit.off(true, true)\n"
        "local function hog() local t = {} while true do t[#t + 1] = ('x'):rep(2 ^ 24) .. #t end end\n"
        "while true do pcall(hog) end");
    CHECK_INT(s->f.cancelled, 1);
    check_usable(s);
    stand_close(s);
}

int main(void)
{
    return check_run();
}
