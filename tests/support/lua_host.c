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

#include "base/arena.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lend.h"
#include "bind/lhttp.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "vm/sched.h"
#include "vm/task.h"
#include "vm/vm.h"

struct host {
    struct loop       *loop;
    struct sched      *sched;
    struct vm         *vm;
    struct arena_pool  arenas;
    struct lend        lend;
    struct lend_worker own;
    struct env         env;
    int                argc;
    char             **argv;
    int                status;
};

static struct host host;

static void end_run(struct vm *vm)
{
    loop_break(host.loop);
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

static int open_host(const char *root, struct err *err)
{
    struct vm_options    options = { .memory_bytes = 512 * 1024 * 1024, .hooks = &HOOKS };
    struct env          *env     = &host.env;
    struct lhttp_options http    = { 0 };
    int                  rc      = loop_open(&host.loop, err);

    if (rc == 0)
        rc = sched_open(&host.sched, host.loop, 0, err);
    if (rc == 0)
        rc = lend_open(&host.lend, err);
    if (rc == 0)
        rc = lend_worker_open(&host.own, &host.lend, host.loop, err);
    if (rc != 0)
        return rc;
    arena_pool_init(&host.arenas, 16);
    http.loop = host.loop;
    *env      = (struct env){ .loop         = host.loop,
                              .sched        = host.sched,
                              .arenas       = &host.arenas,
                              .http         = lhttp_new(&http),
                              .request_id   = lhttp_request_id,
                              .app_root     = root,
                              .worker_count = 1,
                              .generation   = 1,
                              .under_test   = true };
    lend_to(env, &host.lend, &host.own);
    rc = vm_open(&host.vm, host.sched, &options, err);
    return rc == 0 ? script_open(host.vm, env, err) : rc;
}

static void close_host(void)
{
    vm_abandon_tasks(host.vm);
    vm_close(host.vm);
    lhttp_free(host.env.http);
    lend_worker_close(&host.own);
    sched_close(host.sched);
    lend_close(&host.lend);
    loop_close(host.loop);
    arena_pool_fini(&host.arenas);
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
    if (open_host(root, &err) != 0) {
        fprintf(stderr, "lua_host: %s\n", err.text);
        return 1;
    }
    if (task_start(host.vm,
                   &(struct task_spec){ .prepare = prepare, .on_end = on_end, .label = "busted" }))
        loop_run(host.loop);
    close_host();
    return host.status != 0;
}
