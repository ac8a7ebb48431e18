#include "bind/lcommand.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "vm/task.h"
#include "vm/vm.h"

struct command {
    const char *name, *app_file, *fault;
    int         argc;
    char      **argv;
    lcommand_fn on_done;
    void       *arg;
};

static int prepare_command(lua_State *co, struct task *task, void *arg)
{
    const struct command *command = arg;

    lua_getglobal(co, "require");
    lua_pushfstring(co, "srv.cli.%s", command->name);
    lua_call(co, 1, 1);
    lua_createtable(co, command->argc, 0);
    for (int i = 0; i < command->argc; i++) {
        lua_pushstring(co, command->argv[i]);
        lua_rawseti(co, -2, i + 1);
    }
    lua_pushstring(co, command->app_file);
    lua_pushstring(co, command->fault);
    return 3;
}

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct command *command = arg;
    lcommand_fn     on_done = command->on_done;
    void           *done    = command->arg;

    free(command);
    switch (how) {
    case TASK_RETURNED: on_done((int)lua_tointeger(co, -1), NULL, done); return;
    case TASK_RAISED:
        task_push_failure(co, task);
        on_done(1, lua_tostring(co, -1), done);
        return;
    case TASK_CANCELLED: on_done(1, task_reason(task), done); return;
    }
}

void lcommand_start(struct vm *vm, const char *name, const char *app_file, const char *fault,
                    int argc, char **argv, lcommand_fn on_done, void *arg)
{
    struct command  *command = malloc(sizeof(*command));
    struct task_spec spec    = {
           .prepare = prepare_command, .on_end = on_end, .arg = command, .label = name
    };

    if (!command) {
        on_done(1, "out of memory", arg);
        return;
    }
    *command = (struct command){ name, app_file, fault, argc, argv, on_done, arg };
    task_start(vm, &spec);
}
