#include "cli/luacmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/lcommand.h"
#include "bind/lend.h"
#include "bind/lhttp.h"
#include "bind/script.h"
#include "cli/usage.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "server/config.h"
#include "vm/sched.h"
#include "vm/vm.h"

enum { ARENA_CHUNKS_KEPT = 256 };

/* What a worker has, without a socket: srv.test() needs all of it. */
struct host {
    struct config      config;
    struct lend        lend;
    struct lend_worker own;
    struct env         env;
    struct arena_pool  arenas;
    struct vm         *vm;
    int                exit_status;
};

static const struct vm_hooks VM_HOOKS = { .push_error = script_push_error,
                                          .report     = script_report };

static int open_log(struct host *host, struct err *err)
{
    struct log_options options = { .fd = STDERR_FILENO, .threadless = true };

    log_level_of_name(str_of(host->config.log_level), &options.level);
    log_format_of_name(str_of(host->config.log_format), &options.format);
    return log_open(&host->env.log, &options, err);
}

static int open_host(struct host *host, struct err *err)
{
    struct env       *env     = &host->env;
    struct vm_options options = { .memory_bytes = host->config.lua_memory, .hooks = &VM_HOOKS };
    int               rc      = open_log(host, err);

    arena_pool_init(&host->arenas, ARENA_CHUNKS_KEPT);
    env->arenas        = &host->arenas;
    env->request_id    = lhttp_request_id;
    env->app_root      = host->config.app_root;
    env->dev           = host->config.dev;
    env->worker_count  = 1;
    env->generation    = 1;
    env->settings      = host->config.settings;
    env->setting_count = host->config.setting_count;
    if (rc == 0)
        rc = loop_open(&env->loop, err);
    if (rc == 0)
        rc = sched_open(&env->sched, env->loop, 0, err);
    if (rc == 0)
        rc = lend_open(&host->lend, err);
    if (rc == 0)
        rc = lend_worker_open(&host->own, &host->lend, env->loop, err);
    if (rc != 0)
        return rc;
    lend_to(env, &host->lend, &host->own);
    env->http = lhttp_new(
        &(struct lhttp_options){ .loop = env->loop, .timeout_ms = host->config.timeout_ms });
    rc = env->http ? vm_open(&host->vm, env->sched, &options, err)
                   : err_set(err, ERR_MEMORY, "no memory for a server");
    return rc == 0 ? script_open(host->vm, env, err) : rc;
}

static void close_host(struct host *host)
{
    struct env *env = &host->env;

    if (host->vm)
        vm_abandon_tasks(host->vm);
    vm_close(host->vm);
    lhttp_free(env->http);
    if (env->loop)
        inbox_close(loop_inbox(env->loop));
    lend_worker_close(&host->own);
    lend_close(&host->lend);
    sched_close(env->sched);
    loop_close(env->loop);
    arena_pool_fini(&host->arenas);
    log_close(env->log);
    config_fini(&host->config);
}

static void on_done(int exit_status, const char *error, void *arg)
{
    struct host *host = arg;

    if (error)
        fprintf(stderr, "srv: %s\n", error);
    host->exit_status = error ? CLI_FAILED : exit_status;
    loop_break(host->env.loop);
}

/* The first argument that is no flag names the app; without one it is the folder one stands in. */
static int configure(struct host *host, int argc, char **argv, struct err *err)
{
    const char *app = argc > 0 && argv[0][0] != '-' ? argv[0] : ".";
    int         rc;

    config_init(&host->config);
    /* What an app says at every start would bury a command's own words. */
    rc = config_set(&host->config, "log_level", "warn", "default", err);
    if (rc == 0)
        rc = config_set_app(&host->config, app, err);
    if (rc == 0)
        rc = config_read_file(&host->config, err);
    if (rc == 0)
        rc = config_read_environment(&host->config, err);
    return rc;
}

int luacmd_main(const char *name, int argc, char **argv)
{
    struct host *host = calloc(1, sizeof(*host));
    struct err   err  = { 0 };
    int          status;

    if (!host)
        return CLI_FAILED;
    thread_block_signals();
    status = configure(host, argc, argv, &err);
    host->env.under_test = strcmp(name, "test") == 0;
    if (status == 0)
        status = open_host(host, &err);
    if (status == 0) {
        lcommand_start(host->vm, name, host->config.app_file, argc, argv, on_done, host);
        loop_run(host->env.loop);
        status = host->exit_status;
    } else {
        fprintf(stderr, "srv: %s\n", err.text);
        status = CLI_FAILED;
    }
    close_host(host);
    free(host);
    return status;
}
