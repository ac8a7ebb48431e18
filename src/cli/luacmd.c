#include "cli/luacmd.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "cli/testwatch.h"
#include "cli/usage.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "server/config.h"
#include "server/version.h"
#include "server/watchdog.h"
#include "vm/sched.h"
#include "vm/stop.h"
#include "vm/vm.h"

enum { ARENA_CHUNKS_KEPT = 256 };

/* What a command's VM is for. */
struct luacmd {
    const char *name;
    bool        is_of_app; /* its first argument names an app, whose settings hold */
    bool        is_test;   /* specs: srv.test is there */
};

/* clang-format off */
static const struct luacmd COMMANDS[] = {
    { "bench",      false, false },
    { "cert",       false, false },
    { "check",      true,  false },
    { "completion", false, false },
    { "doctor",     false, false },
    { "flame",      false, false },
    { "new",        false, false },
    { "repl",       false, false },
    { "routes",     true,  false },
    { "test",       true,  true },
    { "types",      true,  false },
};
/* clang-format on */

static const struct luacmd *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    return NULL;
}

bool luacmd_is(const char *name)
{
    return find_command(name) != NULL;
}

/* What a worker has, without a socket: srv.test() needs all of it. */
struct host {
    struct config      config;
    struct lend        lend;
    struct lend_worker own;
    struct env         env;
    struct arena_pool  arenas;
    struct vm         *vm;
    int                exit_status;

    struct later
        begin; /* from within the loop: the watchdog looks at no slice outside of its turns */
    const char *name;
    const char *fault;
    int         argc;
    char      **argv;

    struct watchdog *watchdog;
    pthread_t        thread; /* that runs the loop */
    _Atomic uint64_t over_slice;
    _Atomic uint64_t over_ms;
};

static const struct vm_hooks VM_HOOKS = { .push_error = script_push_error,
                                          .report     = script_report };

/* --- code that loops for ever -------------------------------------------------------------------- */

static struct host *watched_host;

/* In the loop's thread, from on_over(). */
static void on_sigurg(int number)
{
    int before = errno;

    stop_slice(watched_host->env.sched, atomic_load(&watched_host->over_slice),
               atomic_load(&watched_host->over_ms));
    errno = before;
}

static void on_over(unsigned slot, uint64_t slice, uint64_t slice_ms, void *arg)
{
    struct host *host = arg;

    atomic_store(&host->over_slice, slice);
    atomic_store(&host->over_ms, slice_ms);
    pthread_kill(host->thread, SIGURG);
}

static int open_watchdog(struct host *host, struct err *err)
{
    static const struct watchdog_ops OPS = { .over = on_over };

    struct sigaction       action  = { .sa_handler = on_sigurg, .sa_flags = SA_RESTART };
    struct watched         watched = { host->env.loop, host->env.sched };
    struct watchdog_limits limits  = { 0, host->config.slice_limit_ms };

    watched_host = host;
    host->thread = pthread_self();
    sigemptyset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL);
    return watchdog_open(&host->watchdog, &watched, 1, &limits, &OPS, host, err);
}

/* Whoever runs a command may end it; the other threads leave that to this one. */
static void take_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* --- life ---------------------------------------------------------------------------------------- */

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
    env->version       = SRV_VERSION;
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
    if (rc == 0)
        rc = script_open(host->vm, env, err);
    return rc == 0 ? open_watchdog(host, err) : rc;
}

static void close_host(struct host *host)
{
    struct env *env = &host->env;

    watchdog_close(host->watchdog);
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

static void on_begin(struct later *later)
{
    struct host *host = container_of(later, struct host, begin);

    lcommand_start(host->vm, host->name, host->config.app_file, host->fault, host->argc, host->argv,
                   on_done, host);
}

static bool is_spec(const char *path)
{
    static const char END[] = "_spec.lua";
    size_t            len   = strlen(path);

    return len >= sizeof(END) - 1 && strcmp(path + len - (sizeof(END) - 1), END) == 0;
}

/* The first argument that is no flag and no spec names the app; without one it is the folder one
 * stands in. */
static const char *app_of(const struct luacmd *command, int argc, char **argv)
{
    return command->is_of_app && argc > 0 && argv[0][0] != '-' && !is_spec(argv[0]) ? argv[0] : ".";
}

/* It tells what is wrong with the settings, where others do not begin. */
static bool is_check(const struct luacmd *command)
{
    return strcmp(command->name, "check") == 0;
}

static int read_settings(struct config *config, struct err *err)
{
    int rc = config_read_file(config, err);

    return rc == 0 ? config_read_environment(config, err) : rc;
}

static int configure(struct host *host, const struct luacmd *command, int argc, char **argv,
                     struct err *err)
{
    int rc;

    config_init(&host->config);
    /* What an app says at every start would bury a command's own words. */
    rc = config_set(&host->config, "log_level", "warn", "default", err);
    if (rc == 0)
        rc = config_set_app(&host->config, app_of(command, argc, argv), err);
    if (rc != 0 || !command->is_of_app)
        return rc;
    rc = read_settings(&host->config, err);
    return is_check(command) ? 0 : rc;
}

/* A report that nobody got is no success; a reader who has had enough (| head) is none the worse. */
static int with_output(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return status;
    fprintf(stderr, "srv: the output cannot be written\n");
    return status == 0 ? CLI_FAILED : status;
}

int luacmd_main(const char *name, int argc, char **argv)
{
    const struct luacmd *command = find_command(name);
    struct host         *host    = calloc(1, sizeof(*host));
    struct err           err     = { 0 };
    struct err           fault   = { 0 };
    int                  status;

    if (!host)
        return CLI_FAILED;
    status               = configure(host, command, argc, argv, &fault);
    err                  = fault;
    host->env.under_test = command->is_test;
    if (status == 0 && host->env.under_test && testwatch_is_wanted(argc, argv)) {
        status = testwatch_main(host->config.app_root, argc, argv);
        config_fini(&host->config);
        free(host);
        return status;
    }
    thread_block_signals();
    if (status == 0)
        status = open_host(host, &err);
    if (status == 0) {
        take_signals();
        host->name  = name;
        host->fault = *fault.text ? fault.text : NULL;
        host->argc  = argc;
        host->argv  = argv;
        later_init(&host->begin, on_begin);
        loop_later(host->env.loop, &host->begin);
        loop_run(host->env.loop);
        status = host->exit_status;
    } else {
        fprintf(stderr, "srv: %s\n", err.text);
        status = CLI_FAILED;
    }
    close_host(host);
    free(host);
    return with_output(status);
}
