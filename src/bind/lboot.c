#include "bind/lboot.h"

#include <lauxlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bind/lsite.h"
#include "vm/task.h"
#include "vm/vm.h"

/* In the registry: what app.lua returned, until boot.lua has made a site of it; then the site, which
 * lives as long as the VM. */
#define APP_VALUE "srv.boot.app"

static void finish(struct lboot *boot, struct lsite *site, const char *why)
{
    lboot_fn on_done = boot->on_done;

    boot->on_done = NULL;
    if (on_done)
        on_done(site, why, boot->arg);
}

static void on_booted(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct lboot *boot = arg;

    if (!boot->on_done)
        return;
    switch (how) {
    case TASK_RETURNED:
        lua_pushvalue(co, -1);
        lua_setfield(co, LUA_REGISTRYINDEX, APP_VALUE);
        finish(boot, lsite_check(co, -1), NULL);
        return;
    case TASK_RAISED:
        task_push_failure(co, task);
        finish(boot, NULL, lua_tostring(co, -1));
        return;
    case TASK_CANCELLED: finish(boot, NULL, task_reason(task)); return;
    }
}

static const char *app_name(const struct lboot *boot)
{
    const char *slash = strrchr(boot->app_file, '/');

    return slash ? slash + 1 : boot->app_file;
}

/* boot(has_file, value, name) -> site */
static int prepare_boot(lua_State *co, struct task *task, void *arg)
{
    struct lboot *boot = arg;

    lua_getglobal(co, "require");
    lua_pushliteral(co, "srv.boot");
    lua_call(co, 1, 1);
    lua_pushboolean(co, *boot->app_file != '\0');
    lua_getfield(co, LUA_REGISTRYINDEX, APP_VALUE);
    lua_pushstring(co, app_name(boot));
    return 3;
}

static void start_boot(struct lboot *boot)
{
    struct task_spec spec = {
        .prepare = prepare_boot,
        .on_end  = on_booted,
        .arg     = boot,
        .label   = "loading the app",
        .loads   = true,
    };

    task_start(boot->vm, &spec);
}

/* What app.lua returned waits in the registry for the task that makes a site of it. */
static void on_loaded(struct vm *vm, lua_State *L, const char *why, void *arg)
{
    struct lboot *boot = arg;

    if (!boot->on_done)
        return;
    if (why) {
        finish(boot, NULL, why);
        return;
    }
    lua_setfield(L, LUA_REGISTRYINDEX, APP_VALUE);
    start_boot(boot);
}

static void begin(struct later *later)
{
    struct lboot *boot = container_of(later, struct lboot, begin);

    if (*boot->app_file)
        script_load_app(boot->vm, boot->app_file, on_loaded, boot);
    else
        start_boot(boot);
}

void lboot_start(struct lboot *boot, struct loop *loop, struct vm *vm, const char *app_file,
                 lboot_fn on_done, void *arg)
{
    *boot = (struct lboot){ .vm = vm, .app_file = app_file, .on_done = on_done, .arg = arg };
    later_init(&boot->begin, begin);
    loop_later(loop, &boot->begin);
}

void lboot_call_off(struct lboot *boot)
{
    boot->on_done = NULL;
    later_cancel(&boot->begin);
}
