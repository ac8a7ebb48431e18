/* What the scheduler costs: ns of CPU time for each task, wait and step of a generator, the best of
 * several rounds. Prints a table with tabs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "vm/sched.h"
#include "vm/task.h"
#include "vm/vm.h"

enum { ROUNDS = 7, TURNS = 1000 * 1000 };

static struct loop  *loop;
static struct sched *sched;
static struct vm    *vm;
static struct env    env;
static int           function; /* reference of what a task runs */

static double now_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void must(int rc, const struct err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "task_bench: %s\n", err->text);
    exit(1);
}

static void stop(struct vm *drained)
{
    loop_break(loop);
}

static const struct vm_hooks HOOKS = {
    .push_error = script_push_error,
    .report     = script_report,
    .on_drained = stop,
};

static void set_function(const char *code)
{
    if (luaL_loadstring(vm->L, code) != 0) {
        fprintf(stderr, "task_bench: %s\n", lua_tostring(vm->L, -1));
        exit(1);
    }
    function = luaL_ref(vm->L, LUA_REGISTRYINDEX);
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    lua_rawgeti(co, LUA_REGISTRYINDEX, function);
    return 0;
}

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    if (how != TASK_RAISED)
        return;
    task_push_failure(co, task);
    fprintf(stderr, "task_bench: %s\n", lua_tostring(co, -1));
    exit(1);
}

static const struct task_spec SPEC = {
    .prepare = prepare, .on_end = on_end, .label = "bench", .deadline_ms = 30000
};

static double start_ns(void)
{
    double start = now_ns();

    for (unsigned turn = 0; turn < TURNS; turn++)
        task_start(vm, &SPEC);
    return (now_ns() - start) / TURNS;
}

static double run_ns(void)
{
    double start = now_ns();

    task_start(vm, &SPEC);
    while (vm->task_count > 0)
        loop_run(loop);
    return (now_ns() - start) / TURNS;
}

static void report(const char *name, const char *code, double (*measure)(void))
{
    double best = 0;

    set_function(code);
    for (unsigned round = 0; round < ROUNDS; round++) {
        double ns = measure();

        best = round == 0 || ns < best ? ns : best;
    }
    printf("%s\t%.1f\n", name, best);
}

int main(void)
{
    struct vm_options options = { .memory_bytes = 256 << 20, .hooks = &HOOKS };
    struct err        err;

    must(loop_open(&loop, &err), &err);
    must(sched_open(&sched, loop, 0, &err), &err);
    must(vm_open(&vm, sched, &options, &err), &err);
    env = (struct env){ .loop = loop, .sched = sched };
    must(script_open(vm, &env, &err), &err);

    printf("ns\teach\n");
    report("a task whose function returns at once", "return 1", start_ns);
    report("a step of a generator made by wrap",
           "local g = coroutine.wrap(function() while true do coroutine.yield(1) end end)\n"
           "for _ = 1, 1e6 do g() end",
           run_ns);
    report("a step by resume",
           "local g = coroutine.create(function() while true do coroutine.yield(1) end end)\n"
           "local resume = coroutine.resume for _ = 1, 1e6 do resume(g) end",
           run_ns);
    report("a wait for another task (a channel's two ends)",
           "local task, sync = require 'srv.async.task', require 'srv.async.sync'\n"
           "local ch = sync.channel()\n"
           "local t = task.spawn(function() for _ = 1, 5e5 do ch:receive() end end)\n"
           "for i = 1, 5e5 do ch:send(i) end t:wait()",
           run_ns);
    report("the same, four generators deep",
           "local task, sync = require 'srv.async.task', require 'srv.async.sync'\n"
           "local ch = sync.channel()\n"
           "local function deep(n, f) if n == 0 then return f() end\n"
           "  return coroutine.wrap(function() return deep(n - 1, f) end)() end\n"
           "local t = task.spawn(deep, 4, function() for _ = 1, 5e5 do ch:receive() end end)\n"
           "deep(4, function() for i = 1, 5e5 do ch:send(i) end end) t:wait()",
           run_ns);
    report("spawn and wait for its end",
           "local task = require 'srv.async.task' local function f() return 1 end\n"
           "for _ = 1, 1e6 do task.spawn(f):wait() end",
           run_ns);
    vm_close(vm);
    sched_close(sched);
    loop_close(loop);
    return 0;
}
