/* tests/support/lua_app.h - the server's own Lua without a server: a loop, a scheduler and a VM as an app
 * has them, for programs that test what is written in Lua. */
#ifndef TESTS_SUPPORT_LUA_APP_H
#define TESTS_SUPPORT_LUA_APP_H

#include "base/arena.h"
#include "bind/env.h"
#include "bind/lend.h"

struct err;
struct loop;
struct sched;
struct vm;
struct vm_hooks;

struct lua_app {
    struct loop       *loop;
    struct sched      *sched;
    struct vm         *vm;
    struct arena_pool  arenas;
    struct lend        lend;
    struct lend_worker own;
    struct env         env;
};

/* ROOT, an absolute path, stands for the app's folder. HOOKS are borrowed, as ROOT is. */
int  lua_app_open(struct lua_app *app, const char *root, const struct vm_hooks *hooks,
                  struct err *err);
void lua_app_close(struct lua_app *app);

#endif
