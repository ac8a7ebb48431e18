#include "vm/vm.h"

#include <signal.h>
#include <sys/time.h>

#include "support/check.h"
#include "support/vm_fixture.h"
#include "vm/vm_interrupt.h"

TEST(every_state_of_a_vm_knows_it)
{
    struct fixture f;
    lua_State     *co;

    fixture_open(&f);
    co = lua_newthread(f.vm->L);
    CHECK(vm_of(f.vm->L) == f.vm);
    CHECK(vm_of(co) == f.vm);
    fixture_close(&f);
}

TEST(memory_beyond_the_bound_is_an_error_that_can_be_caught)
{
    struct fixture f;

    fixture_open_bounded(&f, 16 * 1024 * 1024);
    CHECK(luaL_dostring(f.vm->L,
                        "local ok, why = pcall(string.rep, 'x', 64 * 2 ^ 20) return why") == 0);
    CHECK_STR(lua_tostring(f.vm->L, -1), "not enough memory");
    CHECK(f.vm->heap.used <= f.vm->heap.max);
    fixture_close(&f);
}

/* spawn(fn) */
static int spawn(lua_State *L)
{
    task_spawn(L, 0, &(struct task_spec){ .parent = task_current(L) });
    return 0;
}

TEST(tasks_count_as_memory_of_their_vm)
{
    struct fixture f;
    size_t         before;

    fixture_open_bounded(&f, 16 * 1024 * 1024);
    lua_register(f.vm->L, "spawn", spawn);
    fixture_start(&f, "count = 0 while true do spawn(sleep) count = count + 1 end");
    fixture_run(&f);
    CHECK_INT(f.raised, 1);
    CHECK(strstr(f.text, "not enough memory"));
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_start(&f, "return count");
    CHECK(atoi(f.text) > 1000);
    CHECK(atoi(f.text) < 16 * 1024 * 1024 / 512);
    before = f.vm->heap.used;
    fixture_start(&f, "for i = 1, 100 do spawn(function() end) end sleep(1)");
    CHECK(f.vm->heap.used > before + 100 * 300);
    fixture_run(&f);
    fixture_close(&f);
}

TEST(a_bound_that_is_too_small_for_a_state_is_told)
{
    struct fixture    f;
    struct vm        *vm      = NULL;
    struct vm_options options = { .memory_bytes = 1000 };
    struct err        err;

    fixture_open(&f);
    CHECK(vm_open(&vm, f.sched, &options, &err) == ERR_MEMORY);
    CHECK(strstr(err.text, "1000 bytes"));
    fixture_close(&f);
}

TEST(what_lua_frees_is_counted_back)
{
    struct fixture f;
    size_t         before;

    fixture_open(&f);
    lua_gc(f.vm->L, LUA_GCCOLLECT, 0);
    before = f.vm->heap.used;
    CHECK(luaL_dostring(f.vm->L, "local t = {} for i = 1, 100000 do t[i] = { i } end") == 0);
    CHECK(f.vm->heap.used > before + 1000000);
    lua_gc(f.vm->L, LUA_GCCOLLECT, 0);
    lua_gc(f.vm->L, LUA_GCCOLLECT, 0);
    CHECK(f.vm->heap.used < before + 100000);
    fixture_close(&f);
}

TEST(the_pause_follows_the_size_of_the_heap)
{
    CHECK_INT(heap_pause_for(1024), 400);
    CHECK_INT(heap_pause_for((size_t)64 << 20), 200);
    CHECK_INT(heap_pause_for((size_t)256 << 20), 120);
}

TEST(idle_steps_finish_a_cycle_that_is_due)
{
    struct fixture f;
    int            steps = 0;

    fixture_open(&f);
    CHECK(!vm_idle_step(f.vm));
    lua_gc(f.vm->L, LUA_GCSTOP, 0);
    CHECK(luaL_dostring(f.vm->L, "local kept = {} for i = 1, 200000 do kept[i % 9] = { i } end") ==
          0);
    while (vm_idle_step(f.vm))
        steps++;
    CHECK(steps > 2);
    CHECK(f.vm->heap.used < 2 * 1024 * 1024);
    CHECK(!vm_idle_step(f.vm));
    fixture_close(&f);
}

TEST(what_dies_while_a_cycle_is_under_way_is_freed_by_the_one_that_was_asked_for)
{
    struct fixture f;

    fixture_open(&f);
    lua_gc(f.vm->L, LUA_GCSTOP, 0);
    CHECK(luaL_dostring(f.vm->L, "kept = {} for i = 1, 200000 do kept[i] = { i } end") == 0);
    for (unsigned i = 0; i < 300; i++)
        CHECK(vm_idle_step(f.vm));
    CHECK(luaL_dostring(f.vm->L, "kept = nil") == 0);
    vm_tidy(f.vm);
    while (vm_idle_step(f.vm))
        continue;
    CHECK(f.vm->heap.used < 2 * 1024 * 1024);
    fixture_close(&f);
}

TEST(the_memory_of_ten_thousand_waits_comes_back)
{
    struct fixture f;
    size_t         before;

    fixture_open(&f);
    before = f.vm->heap.used;
    for (unsigned i = 0; i < 10000; i++)
        fixture_start(&f, "sleep(1) return 1");
    CHECK(f.vm->heap.used > before + 10000 * 500);
    fixture_run(&f);
    CHECK_INT(f.returned, 10000);
    while (vm_idle_step(f.vm))
        continue;
    CHECK(f.vm->heap.used < before + 1024 * 1024);
    fixture_close(&f);
}

TEST(the_task_that_grew_most_goes_when_memory_is_short)
{
    struct fixture f;
    struct task   *small, *large;

    fixture_open_bounded(&f, 32 * 1024 * 1024);
    small = fixture_start(&f, "local t = ('x'):rep(2 ^ 20) sleep(100000) return t");
    large = fixture_start(&f, "local t = {} for i = 1, 27 do t[i] = ('x'):rep(2 ^ 20 + i) end\n"
                              "sleep(100000) return t");
    vm_idle_step(f.vm);
    CHECK(task_reason(small) == NULL);
    CHECK(task_reason(large) && strcmp(task_reason(large), "memory") == 0);
    fixture_close(&f);
}

/* --- handles ------------------------------------------------------------------------------------ */

static unsigned cuts;

static void count_cut(struct handle *handle)
{
    cuts++;
}

TEST(handles_are_cut_before_the_state_closes)
{
    struct fixture f;
    struct handle  kept = { .cut = count_cut }, gone = { .cut = count_cut };

    fixture_open(&f);
    cuts = 0;
    handle_link(&kept, f.vm);
    handle_link(&gone, f.vm);
    handle_unlink(&gone);
    handle_unlink(&gone);
    vm_detach(f.vm);
    CHECK_INT(cuts, 1);
    fixture_close(&f);
}

TEST(finalizers_may_use_coroutines_while_the_state_closes)
{
    struct fixture f;

    fixture_open(&f);
    fixture_run_lua(f.vm->L, "local proxy = newproxy(true)\n"
                             "getmetatable(proxy).__gc = function()\n"
                             "  local gen = coroutine.wrap(function() coroutine.yield(1) end)\n"
                             "  assert(gen() == 1) assert(not pcall(sleep, 1))\n"
                             "  coroutine.resume(coroutine.create(error))\n"
                             "end\n"
                             "kept = proxy");
    fixture_close(&f);
}

/* --- protected calls ------------------------------------------------------------------------------- */

static void raise_something(lua_State *L, void *arg)
{
    luaL_error(L, "raised %s", (const char *)arg);
}

static void use_memory(lua_State *L, void *arg)
{
    luaL_Buffer buffer;

    luaL_buffinit(L, &buffer);
    for (;;)
        luaL_addlstring(&buffer, arg, 1000);
}

TEST(a_protected_call_tells_what_was_raised)
{
    struct fixture f;
    struct err     err;
    char           bytes[1000] = { 0 };

    fixture_open_bounded(&f, 8 * 1024 * 1024);
    CHECK_INT(vm_protect(f.vm, raise_something, "here", &err), ERR_INVALID);
    CHECK_STR(err.text, "raised here");
    CHECK_INT(vm_protect(f.vm, use_memory, bytes, &err), ERR_MEMORY);
    CHECK_STR(err.text, "not enough memory");
    fixture_start(&f, "return 'usable'");
    CHECK_STR(f.text, "usable");
    fixture_close(&f);
}

/* --- the watchdog's question --------------------------------------------------------------------- */

static struct vm *asked;
static char       told[4096]; /* by the last interrupt; "" until then */

static void on_stack(struct vm *vm, const char *traceback)
{
    snprintf(told, sizeof(told), "%s", traceback);
}

static void listen_for_stacks(struct vm *vm)
{
    static struct vm_hooks hooks;

    hooks          = *vm->hooks;
    hooks.on_stack = on_stack;
    vm->hooks      = &hooks;
    told[0]        = '\0';
}

static void on_alarm(int signal_number)
{
    vm_interrupt_stack(asked);
}

/* Asks once, 20 ms of CPU from now. */
static void ask_soon(struct vm *vm)
{
    struct itimerval soon = { .it_value = { .tv_usec = 20000 } };

#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer delivers no signal while Lua runs");
#endif
    asked = vm;
    signal(SIGPROF, on_alarm);
    setitimer(ITIMER_PROF, &soon, NULL);
}

/* answered() -> whether the stack was told */
static int has_answered(lua_State *L)
{
    lua_pushboolean(L, *told != '\0');
    return 1;
}

TEST(a_busy_loop_tells_its_stack_when_asked)
{
    struct fixture f;

    fixture_open(&f);
    listen_for_stacks(f.vm);
    lua_register(f.vm->L, "answered", has_answered);
    ask_soon(f.vm);
    fixture_start(&f, "local function grind() local n = 0\n"
                      "  while not answered() do n = n + 1 end return n end\n"
                      "local gen = coroutine.wrap(function() grind() return 1 end)\n"
                      "\n"
                      "gen() return 'done'");
    CHECK_STR(f.text, "done");
    CHECK(strstr(told, "in function 'grind'"));
    CHECK(strstr(told, "resumed from:"));
    CHECK(strstr(told, "app.lua:5:"));
    fixture_close(&f);
}

#ifdef SRV_CHECKHOOK
TEST(a_compiled_loop_tells_its_stack_too)
{
    struct fixture f;

    fixture_open(&f);
    listen_for_stacks(f.vm);
    ask_soon(f.vm);
    fixture_start(&f, "local n = 0 for i = 1, 3e8 do n = n + i % 7 end return 'done'");
    CHECK(strstr(told, "app.lua:1:"));
    fixture_close(&f);
}
#endif

TEST(asking_while_nothing_runs_asks_nobody)
{
    struct fixture f;

    fixture_open(&f);
    listen_for_stacks(f.vm);
    vm_interrupt_stack(f.vm);
    fixture_start(&f, "return 1");
    CHECK_STR(told, "");
    fixture_close(&f);
}

static int ask_from_c(lua_State *L)
{
    vm_interrupt_stack(vm_of(L));
    return 0;
}

TEST(the_apps_own_hook_is_back_afterwards)
{
    struct fixture f;

    fixture_open(&f);
    listen_for_stacks(f.vm);
    lua_register(f.vm->L, "ask", ask_from_c);
    fixture_start(&f, "local lines = 0\n"
                      "debug.sethook(function() lines = lines + 1 end, 'l')\n"
                      "ask()\n"
                      "local x = 1\n"
                      "local y = 2\n"
                      "debug.sethook()\n"
                      "return lines >= 2 and 'counted' or lines");
    CHECK_STR(f.text, "counted");
    CHECK(*told);
    fixture_close(&f);
}

int main(void)
{
    return check_run();
}
