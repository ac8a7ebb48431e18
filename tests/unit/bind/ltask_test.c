/* Tasks in great number: random waits, cancels, errors and nesting, after which nothing may be left. */
#include "bind/ltask.h"

#include <stdlib.h>

#include "base/arena.h"
#include "bind/env.h"
#include "bind/script.h"
#include "support/check.h"
#include "support/vm_fixture.h"

struct world {
    struct loop  *loop;
    struct sched *sched;
    struct vm    *vm;
    struct env    env;
    unsigned      reports;
};

static struct world *world_in_use;

static void stop_loop(struct vm *vm)
{
    loop_break(world_in_use->loop);
}

static void count_report(struct vm *vm, struct task *task, const char *what, const char *text)
{
    world_in_use->reports++;
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error,
                                       .report     = count_report,
                                       .on_drained = stop_loop };

static void open_world(struct world *w, size_t memory_bytes)
{
    struct vm_options options = { .memory_bytes = memory_bytes, .hooks = &HOOKS };
    struct err        err     = { 0 };

    memset(w, 0, sizeof(*w));
    world_in_use = w;
    loop_open(&w->loop, &err);
    sched_open(&w->sched, w->loop, 0, &err);
    w->env = (struct env){ .loop = w->loop, .sched = w->sched, .app_root = "/nonexistent" };
    CHECK_INT(vm_open(&w->vm, w->sched, &options, &err), 0);
    CHECK_INT(script_open(w->vm, &w->env, &err), 0);
}

static void close_world(struct world *w)
{
    vm_abandon_tasks(w->vm);
    CHECK_INT(sched_task_count(w->sched), 0);
    vm_close(w->vm);
    sched_close(w->sched);
    loop_close(w->loop);
}

static const char *program;

static int prepare(lua_State *co, struct task *task, void *arg)
{
    if (luaL_loadbuffer(co, program, strlen(program), "=stress") != 0)
        lua_error(co);
    return 0;
}

static char failure[8192];

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    failure[0] = '\0';
    if (how == TASK_CANCELLED)
        snprintf(failure, sizeof(failure), "cancelled: %s", task_reason(task));
    if (how != TASK_RAISED)
        return;
    task_push_failure(co, task);
    snprintf(failure, sizeof(failure), "%s", lua_tostring(co, -1));
}

static void run(struct world *w, const char *code)
{
    program = code;
    if (task_start(w->vm,
                   &(struct task_spec){ .prepare = prepare, .on_end = on_end, .label = "stress" }))
        loop_run(w->loop);
}

/* What TASKS tasks do at random, each one more with a seed of its own. */
static const char STRESS[] =
    "local task, sync = require 'srv.async.task', require 'srv.async.sync'\n"
    "local TASKS, live, made, random = TASKS, 0, 0, math.random\n"
    "local channel, event = sync.channel(3), sync.event()\n"
    "local semaphore, mutex = sync.semaphore(4), sync.mutex()\n"
    "local act\n"
    "local function body(depth)\n"
    "  live, made = live + 1, made + 1\n"
    "  task.defer(function() live = live - 1 if random(8) == 1 then task.sleep(0) end end)\n"
    "  for _ = 1, random(4) do act(depth) end\n"
    "  return made, random(4) == 1 and { made } or nil\n"
    "end\n"
    "local function sub(depth) return function() return body(depth + 1) end end\n"
    "local actions = {\n"
    "  function() task.sleep(random(0, 2) / 1000) end,\n"
    "  function() channel:send(made, random(0, 1) / 1000) end,\n"
    "  function() channel:receive(random(0, 1) / 1000) end,\n"
    "  function() event:wait(random(0, 1) / 1000) end,\n"
    "  function() event:set() event:clear() end,\n"
    "  function(d) semaphore:with(act, d + 1) end,\n"
    "  function() if mutex:lock(0.001) then task.sleep(0) mutex:unlock() end end,\n"
    "  function() if semaphore:acquire(0.001) and random(2) == 1 then semaphore:release() end end,\n"
    "  function(d) for v in coroutine.wrap(function()\n"
    "    for i = 1, random(3) do act(d + 1) coroutine.yield(i) end end) do\n"
    "      if random(5) == 1 then break end end end,\n"
    "  function(d) coroutine.wrap(function() coroutine.wrap(function() act(d + 1) end)() end)() end,\n"
    "  function() error('random') end,\n"
    "  function() error({ status = 404 }) end,\n"
    "  function(d) pcall(task.all, sub(d), sub(d)) end,\n"
    "  function(d) pcall(task.race, sub(d), sub(d)) end,\n"
    "  function(d) task.timeout(random(0, 2) / 1000, sub(d)) end,\n"
    "  function(d) pcall(task.map, { 1, 2, 3 }, sub(d), { limit = 2 }) end,\n"
    "  function(d) local t = task.spawn(sub(d))\n"
    "    if random(2) == 1 then task.sleep(0) end\n"
    "    if random(2) == 1 then t:cancel() end\n"
    "    if random(2) == 1 then pcall(t.wait, t, random(0, 1) / 1000) end end,\n"
    "  function() pcall(table.sort, { 3, 2, 1 }, function() task.sleep(0) end) end,\n"
    "  function() pcall(string.gsub, 'x', 'x', coroutine.wrap(function() event:wait() end)) end,\n"
    "  function() collectgarbage('step') end,\n"
    "}\n"
    "function act(depth)\n"
    "  if depth > 5 or made > TASKS then return task.sleep(0) end\n"
    "  return actions[random(#actions)](depth)\n"
    "end\n"
    "while made < TASKS do\n"
    "  local roots = {}\n"
    "  for i = 1, 50 do roots[i] = task.spawn(body, 0) end\n"
    "  for i = 1, 50 do\n"
    "    if random(4) == 1 then roots[i]:cancel() end\n"
    "    pcall(roots[i].wait, roots[i], 0.05)\n"
    "    roots[i]:cancel()\n"
    "    pcall(roots[i].wait, roots[i])\n"
    "  end\n"
    "end\n"
    "assert(live == 0, 'not every defer has run: ' .. live)\n"
    "for _ = 1, 4 do assert(semaphore:acquire(1), 'a permit was lost') end\n"
    "assert(mutex:lock(1), 'the mutex was lost')\n";

static void stress(struct world *w, unsigned tasks, unsigned seed)
{
    char *code = malloc(sizeof(STRESS) + 200);

    sprintf(code, "math.randomseed(%u) local TASKS = %u\n%s", seed, tasks, STRESS);
    run(w, code);
    free(code);
}

static size_t collected_bytes(struct world *w)
{
    for (int i = 0; i < 4; i++)
        lua_gc(w->vm->L, LUA_GCCOLLECT, 0);
    return w->vm->heap.used;
}

TEST(a_hundred_thousand_tasks_leave_nothing_behind)
{
    struct world w;
    size_t       before, after;
    unsigned     seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : 1;

    open_world(&w, 512 << 20);
    stress(&w, 1000, seed);
    CHECK_STR(failure, "");
    before = collected_bytes(&w);
    stress(&w, 100000, seed + 1);
    CHECK_STR(failure, "");
    CHECK_INT(sched_task_count(w.sched), 0);
    after = collected_bytes(&w);
    if (after >= before + 200000)
        fprintf(stderr, "%zu bytes before, %zu after\n", before, after);
    CHECK(after < before + 200000);
    close_world(&w);
}

TEST(a_vm_may_be_closed_in_the_middle_of_it_all)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct world w;

        open_world(&w, 512 << 20);
        program = "local task = require 'srv.async.task'\n"
                  "task.defer(function() error 'never' end)\n"
                  "for i = 1, 100 do\n"
                  "  task.spawn(function()\n"
                  "    coroutine.wrap(function() task.all(function() task.sleep '1h' end,\n"
                  "      function() task.sleep(i % 7 / 1000) end) end)()\n"
                  "    task.sleep(i % 3) end)\n"
                  "end\n"
                  "task.sleep(60)";
        task_start(w.vm, &(struct task_spec){ .prepare = prepare, .on_end = on_end });
        task_start(w.vm, &(struct task_spec){ .prepare = prepare, .on_end = on_end });
        close_world(&w);
    }
}

TEST(at_the_memory_bound_errors_stay_with_their_tasks)
{
    struct world w;

    open_world(&w, 12 << 20);
    for (unsigned round = 1; round <= 5; round++) {
        run(&w,
            "local task = require 'srv.async.task'\n"
            "local function hog() local t = {} while true do t[#t + 1] = { #t } end end\n"
            "local function nested() for _ = 1, 20 do\n"
            "  pcall(coroutine.wrap(function() task.sleep(0) error({}) end)) end return 'fine' end\n"
            "local handles, failed, fine = {}, 0, 0\n"
            "for i = 1, 8 do handles[i] = task.spawn(i % 2 == 0 and hog or nested) end\n"
            "for i = 1, 8 do\n"
            "  local ok, v = pcall(handles[i].wait, handles[i])\n"
            "  if not ok then failed = failed + 1 assert(v == 'not enough memory', v) end\n"
            "  if v == 'fine' then fine = fine + 1 end\n"
            "end\n"
            "assert(failed == 4 and fine == 4, failed .. ' ' .. fine)\n");
        CHECK_STR(failure, "");
    }
    CHECK_INT(sched_task_count(w.sched), 0);
    close_world(&w);
}

int main(void)
{
    return check_run();
}
