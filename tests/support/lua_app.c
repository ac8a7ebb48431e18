#include "support/lua_app.h"

#include "base/err.h"
#include "bind/lhttp.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "vm/sched.h"
#include "vm/vm.h"

enum { MEMORY_BYTES = 512 * 1024 * 1024, ARENAS_FREE_MAX = 16 };

static int open_loop(struct lua_app *app, struct err *err)
{
    int rc = loop_open(&app->loop, err);

    if (rc == 0)
        rc = sched_open(&app->sched, app->loop, 0, err);
    if (rc == 0)
        rc = lend_open(&app->lend, err);
    if (rc == 0)
        rc = lend_worker_open(&app->own, &app->lend, app->loop, err);
    return rc;
}

int lua_app_open(struct lua_app *app, const char *root, const struct vm_hooks *hooks,
                 struct err *err)
{
    struct vm_options    options = { .memory_bytes = MEMORY_BYTES, .hooks = hooks };
    struct lhttp_options http    = { 0 };
    int                  rc      = open_loop(app, err);

    if (rc != 0)
        return rc;
    arena_pool_init(&app->arenas, ARENAS_FREE_MAX);
    http.loop = app->loop;
    app->env  = (struct env){ .loop         = app->loop,
                              .sched        = app->sched,
                              .arenas       = &app->arenas,
                              .http         = lhttp_new(&http),
                              .request_id   = lhttp_request_id,
                              .app_root     = root,
                              .worker_count = 1,
                              .generation   = 1,
                              .under_test   = true };
    lend_to(&app->env, &app->lend, &app->own);
    rc = vm_open(&app->vm, app->sched, &options, err);
    return rc == 0 ? script_open(app->vm, &app->env, err) : rc;
}

void lua_app_close(struct lua_app *app)
{
    vm_abandon_tasks(app->vm);
    vm_close(app->vm);
    lhttp_free(app->env.http);
    lend_worker_close(&app->own);
    sched_close(app->sched);
    lend_close(&app->lend);
    loop_close(app->loop);
    arena_pool_fini(&app->arenas);
}
