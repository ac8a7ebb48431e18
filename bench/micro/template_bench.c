/* What a page made by a template costs: us of CPU time for each render, the best of several rounds.
 * bench/micro/template.lua has the pages; it runs in the server's own Lua. Prints a table with tabs. */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "support/lua_app.h"
#include "vm/task.h"
#include "vm/vm.h"

static struct lua_app app;
static bool           ended;

static void give_up(const char *text)
{
    fprintf(stderr, "template_bench: %s\n", text);
    exit(1);
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    if (luaL_loadfile(co, BENCH_SCRIPT) != 0)
        lua_error(co);
    return 0;
}

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    if (how == TASK_RAISED) {
        task_push_failure(co, task);
        give_up(lua_tostring(co, -1));
    }
    ended = true;
    loop_break(app.loop);
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error, .report = script_report };

int main(void)
{
    struct err       err  = { 0 };
    struct task_spec spec = { .prepare = prepare, .on_end = on_end, .label = "bench" };

    if (lua_app_open(&app, BENCH_ROOT, &HOOKS, &err) != 0)
        give_up(err.text);
    task_start(app.vm, &spec);
    while (!ended)
        loop_run(app.loop);
    lua_app_close(&app);
    return 0;
}
