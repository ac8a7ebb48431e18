/* lua_host - runs busted specs in the server's own Lua: a loop, a scheduler, a VM as an app has it, and
 * busted in one of its tasks, so that `it` may wait.
 *
 *     lua_host ROOT [busted's arguments] SPEC...
 *
 * ROOT stands for the app's folder. Exit status 0: every spec passed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "support/lua_app.h"
#include "vm/task.h"
#include "vm/vm.h"

struct host {
    struct lua_app app;
    int            argc;
    char         **argv;
    int            status;
};

static struct host host;

static void end_run(struct vm *vm)
{
    loop_break(host.app.loop);
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error,
                                       .report     = script_report,
                                       .on_drained = end_run };

/* os.exit(code): what busted calls when something failed */
static int note_exit(lua_State *L)
{
    host.status = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0) != 0;
    return luaL_error(L, "busted has ended");
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    lua_createtable(co, host.argc, 0);
    for (int i = 0; i < host.argc; i++) {
        lua_pushstring(co, host.argv[i]);
        lua_rawseti(co, -2, i + 1);
    }
    lua_setglobal(co, "arg");
    lua_getglobal(co, "os");
    lua_pushcfunction(co, note_exit);
    lua_setfield(co, -2, "exit");
    lua_settop(co, 0);
    if (luaL_loadstring(co, "require 'busted.runner' { standalone = false }") != 0)
        lua_error(co);
    return 0;
}

/* Raised without os.exit() having been called: busted itself has failed. */
static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    if (how == TASK_RETURNED) {
        host.status = 0;
    } else if (how == TASK_RAISED && host.status < 0) {
        task_push_failure(co, task);
        fprintf(stderr, "%s\n", lua_tostring(co, -1));
    }
}

int main(int argc, char **argv)
{
    char       root[PATH_MAX];
    struct err err = { 0 };

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3 || !realpath(argv[1], root)) {
        fprintf(stderr, "usage: lua_host ROOT SPEC...\n");
        return 2;
    }
    host.argc   = argc - 2;
    host.argv   = argv + 2;
    host.status = -1;
    if (lua_app_open(&host.app, root, &HOOKS, &err) != 0) {
        fprintf(stderr, "lua_host: %s\n", err.text);
        return 1;
    }
    if (task_start(host.app.vm,
                   &(struct task_spec){ .prepare = prepare, .on_end = on_end, .label = "busted" }))
        loop_run(host.app.loop);
    lua_app_close(&host.app);
    return host.status != 0;
}
