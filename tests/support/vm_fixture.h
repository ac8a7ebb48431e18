/* tests/support/vm_fixture.h - a loop, a scheduler and a VM for unit tests, with coroutine.* as the
 * server has it and a global sleep(ms). */
#ifndef TESTS_SUPPORT_VM_FIXTURE_H
#define TESTS_SUPPORT_VM_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/err.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "vm/coroutine.h"
#include "vm/sched.h"
#include "vm/task.h"
#include "vm/vm.h"

struct fixture {
    struct loop  *loop;
    struct sched *sched;
    struct vm    *vm;
    bool          breaks_on_end;
    unsigned      ended, returned, raised, cancelled; /* on_end of fixture_start()'s tasks */
    char          text[2048];                         /* of the last one: its result or error */
    char          trace[4096];
    unsigned      reports;
    char          report[4096]; /* what vm_report() told last */
};

static _Thread_local struct fixture *fixture_in_use;

static inline void fixture_report(struct vm *vm, struct task *task, const char *what,
                                  const char *text)
{
    fixture_in_use->reports++;
    snprintf(fixture_in_use->report, sizeof(fixture_in_use->report), "%s: %s", what, text);
}

static inline void fixture_break(struct vm *vm)
{
    loop_break(fixture_in_use->loop);
}

static inline void fixture_push_error(lua_State *L, const char *code, const char *message)
{
    lua_pushfstring(L, "%s: %s", code, message);
}

/* sleep(ms) */
static int fixture_sleep(lua_State *L)
{
    task_current(L);
    return task_wait_for(L, NULL, NULL, NULL, (uint64_t)luaL_checknumber(L, 1), NULL);
}

static inline void fixture_run_lua(lua_State *L, const char *code)
{
    if (luaL_dostring(L, code) != 0) {
        fprintf(stderr, "fixture: %s\n", lua_tostring(L, -1));
        abort();
    }
}

static inline void fixture_open_libraries(lua_State *L)
{
    luaL_openlibs(L);
    coroutine_open(L);
    lua_setglobal(L, "relay");
    lua_pushcfunction(L, fixture_sleep);
    lua_setglobal(L, "sleep");
    fixture_run_lua(L, "coroutine.resume, coroutine.status = relay.resume, relay.status\n"
                       "coroutine.running, coroutine.yield = relay.running, relay.yield\n"
                       "local step, create, error = relay.step, coroutine.create, error\n"
                       "local function finish(ok, ...)\n"
                       "  if ok then return ... end\n"
                       "  error((...), 0)\n"
                       "end\n"
                       "function coroutine.wrap(f)\n"
                       "  local co = create(f)\n"
                       "  return function(...) return finish(step(co, ...)) end\n"
                       "end\n");
}

static const struct vm_hooks FIXTURE_HOOKS = {
    .push_error = fixture_push_error,
    .report     = fixture_report,
    .on_drained = fixture_break,
};

static inline void fixture_open_bounded(struct fixture *fixture, size_t memory_bytes)
{
    struct vm_options options = { memory_bytes, &FIXTURE_HOOKS };
    struct err        err;

    memset(fixture, 0, sizeof(*fixture));
    fixture_in_use = fixture;
    if (loop_open(&fixture->loop, &err) != 0 ||
        sched_open(&fixture->sched, fixture->loop, 0, &err) != 0 ||
        vm_open(&fixture->vm, fixture->sched, &options, &err) != 0) {
        fprintf(stderr, "fixture: %s\n", err.text);
        abort();
    }
    fixture_open_libraries(fixture->vm->L);
}

static inline void fixture_open(struct fixture *fixture)
{
    fixture_open_bounded(fixture, 256 * 1024 * 1024);
}

static inline void fixture_close(struct fixture *fixture)
{
    vm_abandon_tasks(fixture->vm);
    vm_close(fixture->vm);
    sched_close(fixture->sched);
    loop_close(fixture->loop);
}

static inline void fixture_on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct fixture *fixture = arg;
    const char     *text    = how == TASK_CANCELLED ? task_reason(task) : lua_tostring(co, -1);

    fixture->ended++;
    if (fixture->breaks_on_end)
        loop_break(fixture->loop);
    fixture->returned += how == TASK_RETURNED;
    fixture->raised += how == TASK_RAISED;
    fixture->cancelled += how == TASK_CANCELLED;
    snprintf(fixture->text, sizeof(fixture->text), "%s", text ? text : "");
    if (how == TASK_RAISED) {
        task_push_traceback(co, task);
        snprintf(fixture->trace, sizeof(fixture->trace), "%s", lua_tostring(co, -1));
    }
}

static _Thread_local const char *fixture_code;

static inline int fixture_prepare(lua_State *co, struct task *task, void *arg)
{
    if (luaL_loadbuffer(co, fixture_code, strlen(fixture_code), "=app.lua") != 0)
        lua_error(co);
    return 0;
}

/* Starts CODE as a root task. */
static inline struct task *fixture_start(struct fixture *fixture, const char *code)
{
    struct task_spec spec = {
        .prepare = fixture_prepare, .on_end = fixture_on_end, .arg = fixture, .label = "test"
    };

    fixture_code = code;
    return task_start(fixture->vm, &spec);
}

/* Turns until one more of fixture_start()'s tasks has ended. */
static inline void fixture_run_to_next_end(struct fixture *fixture)
{
    unsigned before = fixture->ended;

    fixture->breaks_on_end = true;
    while (fixture->ended == before)
        loop_run(fixture->loop);
    fixture->breaks_on_end = false;
}

/* Turns until no task is left. */
static inline void fixture_run(struct fixture *fixture)
{
    while (fixture->vm->task_count > 0) /* a break that came before it ran ends it at once */
        loop_run(fixture->loop);
}

#endif
