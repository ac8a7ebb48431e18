#include "cli/testwatch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/usage.h"
#include "ev/fswatch.h"
#include "ev/loop.h"

struct testwatch {
    char **args; /* of the run: "srv", "test", ..., NULL */
    pid_t  run;  /* 0: none since the last was waited for */
};

bool testwatch_is_wanted(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--watch") == 0)
            return true;
    return false;
}

/* --- a run --------------------------------------------------------------------------------------- */

/* Before the next one: whoever edits does not wait for the old code's result. */
static void end_run(struct testwatch *watch)
{
    if (watch->run == 0)
        return;
    kill(watch->run, SIGTERM);
    while (waitpid(watch->run, NULL, 0) < 0 && errno == EINTR)
        continue;
    watch->run = 0;
}

static void start_run(struct testwatch *watch)
{
    pid_t parent = getpid();

    fflush(NULL);
    watch->run = fork();
    if (watch->run < 0) {
        fprintf(stderr, "srv: no process for the specs: %s\n", strerror(errno));
        watch->run = 0;
    }
    if (watch->run != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        execv("/proc/self/exe", watch->args);
    _exit(CLI_FAILED);
}

/* --- changes ------------------------------------------------------------------------------------- */

/* What runs leave behind (reports, coverage, databases) would start the next one for ever. */
static bool is_source(const char *path, bool is_folder, void *arg)
{
    static const char *const ENDS[] = { ".lua", ".sql", ".html", ".json", ".env", ".txt", ".so" };
    const char              *end    = strrchr(path, '.');

    if (is_folder)
        return true;
    for (size_t i = 0; end && i < sizeof(ENDS) / sizeof(ENDS[0]); i++)
        if (strcmp(end, ENDS[i]) == 0)
            return true;
    return false;
}

static void on_change(const struct fswatch_changes *changes, void *arg)
{
    struct testwatch *watch = arg;

    end_run(watch);
    printf("srv: %s has changed\n", changes->count ? changes->paths[0] : "a folder");
    start_run(watch);
}

/* argv without --watch, behind the names that lead to it. */
static char **args_of_run(int argc, char **argv)
{
    char **args = calloc((size_t)argc + 3, sizeof(*args));
    int    n    = 0;

    if (!args)
        return NULL;
    args[n++] = "srv";
    args[n++] = "test";
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--watch") != 0)
            args[n++] = argv[i];
    return args;
}

int testwatch_main(const char *root, int argc, char **argv)
{
    struct testwatch watch   = { .args = args_of_run(argc, argv) };
    struct loop     *loop    = NULL;
    struct fswatch  *changes = NULL;
    struct err       err     = { 0 };
    int              rc      = watch.args ? loop_open(&loop, &err)
                                          : err_set(&err, ERR_MEMORY, "no memory for the arguments");

    if (rc == 0)
        rc = fswatch_open(&changes, loop, root, on_change, &watch, &err);
    if (rc == 0) {
        fswatch_pick(changes, is_source);
        start_run(&watch);
        loop_run(loop); /* until a signal ends the process, and the run with it */
    } else {
        fprintf(stderr, "srv: %s\n", err.text);
    }
    fswatch_close(changes);
    loop_close(loop);
    free(watch.args);
    return CLI_FAILED;
}
