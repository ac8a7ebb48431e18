#include "bind/script.h"

#include <sys/stat.h>

#include "bind/env.h"
#include "support/check.h"
#include "support/modules.h"
#include "support/vm_fixture.h"

/* An app's folder, and a VM opened for it. */
struct app {
    char          root[64];
    struct loop  *loop;
    struct sched *sched;
    struct vm    *vm;
    struct env    env;
    unsigned      loaded;
    char          result[256]; /* what the file returned, as text */
    char          why[8192];
};

static struct app *app_in_use;

static void stop_loop(struct vm *vm)
{
    loop_break(app_in_use->loop);
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error,
                                       .report     = script_report,
                                       .on_drained = stop_loop };

static void open_app(struct app *app)
{
    struct vm_options options = { .memory_bytes = 256 << 20, .hooks = &HOOKS };
    struct err        err     = { 0 };

    memset(app, 0, sizeof(*app));
    app_in_use = app;
    strcpy(app->root, "/tmp/srv-script-XXXXXX");
    make_folder(app->root);
    loop_open(&app->loop, &err);
    sched_open(&app->sched, app->loop, 0, &err);
    app->env = (struct env){ .loop = app->loop, .sched = app->sched, .app_root = app->root };
    CHECK_INT(vm_open(&app->vm, app->sched, &options, &err), 0);
    CHECK_INT(script_open(app->vm, &app->env, &err), 0);
}

static void close_app(struct app *app)
{
    char command[128];

    vm_abandon_tasks(app->vm);
    vm_close(app->vm);
    sched_close(app->sched);
    loop_close(app->loop);
    snprintf(command, sizeof(command), "rm -r '%s'", app->root);
    CHECK_INT(system(command), 0);
}

static const char *in_app(struct app *app, const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", app->root, name);
    return path;
}

static void put(struct app *app, const char *name, const char *code)
{
    write_file(in_app(app, name), code, strlen(code));
}

static void on_loaded(struct vm *vm, lua_State *L, const char *why, void *arg)
{
    struct app *app = arg;

    app->loaded++;
    if (why)
        snprintf(app->why, sizeof(app->why), "%s", why);
    else
        snprintf(app->result, sizeof(app->result), "%s",
                 lua_tostring(L, -1) ? lua_tostring(L, -1) : "?");
}

static void load(struct app *app, const char *code)
{
    put(app, "app.lua", code);
    if (script_load_app(app->vm, in_app(app, "app.lua"), on_loaded, app))
        loop_run(app->loop);
}

TEST(an_app_that_loads_hands_over_what_it_returned)
{
    struct app app;

    open_app(&app);
    load(&app, "return 'the app'");
    CHECK_INT(app.loaded, 1);
    CHECK_STR(app.result, "the app");
    CHECK_STR(app.why, "");
    close_app(&app);
}

TEST(an_app_may_wait_while_it_loads_and_so_may_its_modules)
{
    struct app app;

    open_app(&app);
    put(&app, "part.lua", "require('srv.async.task').sleep '2ms' return 'part'");
    load(&app, "require('srv.async.task').sleep '2ms' return require 'part'");
    CHECK_STR(app.result, "part");
    close_app(&app);
}

TEST(a_syntax_error_names_file_and_line)
{
    struct app app;

    open_app(&app);
    load(&app, "local a = 1\nlocal b = = 2");
    CHECK(strncmp(app.why, "app.lua:2: unexpected symbol near '='", 37) == 0);
    close_app(&app);
}

TEST(a_syntax_error_in_a_module_names_both_files)
{
    struct app app;

    open_app(&app);
    put(&app, "part.lua", "return {\n  1 2\n}");
    load(&app, "require 'part'");
    CHECK(strstr(app.why, "error loading module 'part' from file '"));
    CHECK(strstr(app.why, "/part.lua':\n\tpart.lua:2: '}' expected"));
    CHECK(strstr(app.why, "app.lua:1: in main chunk"));
    close_app(&app);
}

TEST(an_error_has_file_line_and_traceback)
{
    struct app app;

    open_app(&app);
    put(&app, "part.lua", "local function inner()\n  error 'lost'\nend\ninner()");
    load(&app, "local x = 1\nrequire 'part'");
    CHECK(strncmp(app.why, "part.lua:2: lost\nstack traceback:", 33) == 0);
    CHECK(strstr(app.why, "part.lua:2: in function 'inner'"));
    CHECK(strstr(app.why, "app.lua:2: in main chunk"));
    close_app(&app);
}

TEST(a_file_that_is_missing_is_told)
{
    struct app app;

    open_app(&app);
    CHECK(script_load_app(app.vm, in_app(&app, "app.lua"), on_loaded, &app) == NULL);
    CHECK(strstr(app.why, "app.lua: No such file or directory"));
    close_app(&app);
}

TEST(bytecode_from_outside_is_refused)
{
    struct app app;

    open_app(&app);
    load(&app, "\x1bLJ\x02");
    CHECK(strstr(app.why, "attempt to load chunk with wrong mode"));
    close_app(&app);
}

TEST(an_app_whose_load_is_cancelled_says_why)
{
    struct app   app;
    struct task *task;

    open_app(&app);
    put(&app, "app.lua", "require('srv.async.task').sleep '1h'");
    task = script_load_app(app.vm, in_app(&app, "app.lua"), on_loaded, &app);
    task_cancel(task, "reload");
    loop_run(app.loop);
    CHECK_STR(app.why, "reload");
    close_app(&app);
}

TEST(a_module_in_c_beside_the_app_loads_with_the_app)
{
    struct app app;

    open_app(&app);
    copy_module("counter_1", in_app(&app, "counter.so"));
    load(&app, "return require('counter').next() .. require 'counter.inner'");
    CHECK_STR(app.result, "1inner");
    close_app(&app);
}

TEST(a_module_for_another_lua_says_so)
{
    struct app app;

    open_app(&app);
    CHECK_INT(mkdir(in_app(&app, "lua_modules"), 0700), 0);
    copy_module("newer_lua", in_app(&app, "lua_modules/newer_lua.so"));
    load(&app, "require 'newer_lua'");
    CHECK(strstr(app.why, "error loading module 'newer_lua'"));
    CHECK(strstr(app.why, "is built for Lua 5.4"));
    close_app(&app);
}

TEST(an_undeclared_global_is_found_at_load)
{
    struct app app;

    open_app(&app);
    load(&app, "local x = 1\nfunction helper() end");
    CHECK(strncmp(app.why, "app.lua:2: assignment to the undeclared global \"helper\"", 55) == 0);
    close_app(&app);
}

TEST(os_exit_does_not_end_the_server)
{
    struct app app;

    open_app(&app);
    load(&app, "os.exit(0)");
    CHECK(strncmp(app.why, "app.lua:1: os.exit would act on the whole server", 48) == 0);
    close_app(&app);
}

int main(void)
{
    return check_run();
}
