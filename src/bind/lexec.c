/* Two have a process in hand: the task that it belongs to, and the userdata. The first ends it, the
 * last frees it. */
#include "bind/lexec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lpath.h"
#include "bind/ltask.h"
#include "ev/child.h"
#include "ev/loop.h"
#include "ev/pipe.h"
#include "vm/task.h"
#include "vm/vm_state.h"
#include "vm/waitq.h"

static const char METATABLE[] = "srv.exec.Process";

enum { READ_BYTES = 64 * 1024 /* what a pipe holds */ };

enum end_number { END_IN, END_OUT, END_ERR, END_COUNT };

struct process;

/* One of its pipes, and the one task that may wait for it. */
struct end {
    struct pipe_end pipe;
    struct process *process;
    struct task    *task;    /* NULL: nobody waits */
    const char     *bytes;   /* of who writes: the rest, in a string that its call keeps alive */
    size_t          left;    /* of it; of who reads: how many bytes it wants */
    char           *got;     /* for who reads; owned */
    ssize_t         outcome; /* of the last try: bytes, or PIPE_END, PIPE_FAIL */
    int             error;   /* errno of PIPE_FAIL */
};

struct process {
    unsigned      holders;
    struct held   held;   /* by its task */
    struct handle handle; /* of the VM */
    struct child *child;  /* NULL: reaped, or being ended */
    pid_t         pid;
    bool          has_status;
    int           status;
    struct waitq  waiters; /* for its exit */
    struct end    ends[END_COUNT];
};

/* --- life ------------------------------------------------------------------------------------------- */

static void let_go(struct process *process)
{
    if (--process->holders == 0)
        free(process);
}

/* Who waits for it finds the outcome. */
static void close_end(struct end *end, ssize_t outcome)
{
    pipe_close(&end->pipe);
    end->outcome = outcome;
    if (end->task)
        task_wake(end->task);
}

/* A zombie is kept for as long as its output comes: those of its group may still be writing. */
static void reap_if_over(struct process *process)
{
    if (!process->child || !process->has_status || process->ends[END_OUT].pipe.fd >= 0 ||
        process->ends[END_ERR].pipe.fd >= 0)
        return;
    child_reap(process->child);
    process->child = NULL;
}

static void end_process(struct process *process);

/* It has exited, and nobody can read any more what it said. */
static void bury(struct process *process)
{
    close_end(&process->ends[END_OUT], PIPE_END);
    close_end(&process->ends[END_ERR], PIPE_END);
    reap_if_over(process);
    end_process(process);
}

static void on_exit_seen(struct child *child, void *arg)
{
    struct process *process = arg;

    process->has_status = true;
    process->status     = child_status(child);
    waitq_wake_all(&process->waiters);
    reap_if_over(process);
    if (process->holders == 1) /* the box is gone */
        bury(process);
}

/* Its task is over, or the VM goes. */
static void end_process(struct process *process)
{
    struct child *child = process->child;

    process->child = NULL;
    if (child)
        child_end(child);
    for (int i = 0; i < END_COUNT; i++)
        close_end(&process->ends[i], PIPE_END);
    waitq_wake_all(&process->waiters);
    handle_unlink(&process->handle);
    task_unhold(&process->held);
    let_go(process);
}

static void on_task_end(struct held *held)
{
    end_process(container_of(held, struct process, held));
}

static void cut(struct handle *handle)
{
    end_process(container_of(handle, struct process, handle));
}

static struct process *check_process(lua_State *L)
{
    struct process **box = luaL_checkudata(L, 1, METATABLE);

    return *box;
}

static int collect(lua_State *L)
{
    struct process **box     = luaL_checkudata(L, 1, METATABLE);
    struct process  *process = *box;

    *box = NULL;
    if (!process)
        return 0;
    if (process->has_status && list_is_linked(&process->held.link))
        bury(process); /* its task need not remember it */
    let_go(process);
    return 0;
}

/* --- starting ---------------------------------------------------------------------------------------- */

struct start_job {
    struct ljob        ljob;
    struct lane       *lane;
    struct inbox      *home;
    struct child_spec  spec;
    struct child_start start;
    int                rc;
    struct err         err;
    char              *words[]; /* argv, NULL, envp, NULL; then the bytes of both */
};

static struct start_job *start_of(struct ljob *ljob)
{
    return container_of(ljob, struct start_job, ljob);
}

static void work_start(struct ljob *ljob)
{
    struct start_job *job = start_of(ljob);

    job->rc = child_spawn(&job->spec, &job->start, &job->err);
}

static void work_discard(struct ljob *ljob)
{
    child_discard(&start_of(ljob)->start);
}

static void free_memory(struct ljob *ljob)
{
    free(start_of(ljob));
}

/* It runs, and nobody wants it any more: killing takes a moment, so the lane does it. */
static void forget_start(struct ljob *ljob)
{
    struct start_job *job = start_of(ljob);

    if (job->start.pid == 0) {
        free_memory(ljob);
        return;
    }
    job->ljob = (struct ljob){ .work = work_discard, .free = free_memory };
    ljob_run_alone(&job->ljob, job->lane, job->home);
}

static void on_pipe(struct pipe_end *pipe);

static struct process *new_process(struct vm *vm, struct task *task)
{
    struct process *process = calloc(1, sizeof(*process));

    if (!process)
        return NULL;
    process->holders      = 2;
    process->held.release = on_task_end;
    process->handle.cut   = cut;
    list_init(&process->held.link);
    list_init(&process->handle.link);
    waitq_init(&process->waiters);
    for (int i = 0; i < END_COUNT; i++) {
        process->ends[i].process = process;
        process->ends[i].pipe.fd = -1;
    }
    handle_link(&process->handle, vm);
    task_hold(task, &process->held);
    return process;
}

static int open_ends(struct process *process, struct loop *loop, struct child_start *start)
{
    int rc = 0;

    for (int i = 0; i < END_COUNT; i++) {
        int fd = start->ends[i];

        start->ends[i] = -1;
        if (fd >= 0 && pipe_open(&process->ends[i].pipe, loop, fd, on_pipe) != 0)
            rc = -1;
    }
    return rc;
}

/* Box and process are there before the child is anybody's. */
static int push_started(lua_State *L, struct ljob *ljob)
{
    struct start_job *job = start_of(ljob);
    struct env       *env = env_of(L);
    struct process  **box;

    if (job->rc != 0)
        return lerror_nil_err(L, job->rc == ERR_SYSTEM ? "exec" : NULL, &job->err);
    box  = lua_newuserdata(L, sizeof(*box));
    *box = NULL;
    luaL_getmetatable(L, METATABLE);
    lua_setmetatable(L, -2);
    *box = new_process(vm_of(L), ljob->waiter);
    if (!*box)
        return luaL_error(L, "not enough memory");
    (*box)->pid = job->start.pid;
    if (open_ends(*box, env->loop, &job->start) == 0)
        (*box)->child = child_adopt(env->children, &job->start, on_exit_seen, *box);
    if (!(*box)->child) {
        end_process(*box);
        return lerror_nil(L, "exec", "no memory or descriptor left to watch the process");
    }
    return 1;
}

/* Bytes that the strings of the array at INDEX take. */
static size_t measure(lua_State *L, int index, size_t *count)
{
    size_t bytes = 0;

    *count = lua_objlen(L, index);
    for (size_t i = 1; i <= *count; i++) {
        size_t len;

        lua_rawgeti(L, index, (int)i);
        luaL_checklstring(L, -1, &len);
        bytes += len + 1;
        lua_pop(L, 1);
    }
    return bytes;
}

/* Raises nothing: they are strings. Returns the place behind the last pointer, a NULL. */
static char **copy_words(lua_State *L, int index, size_t count, char **words, char **bytes)
{
    for (size_t i = 1; i <= count; i++) {
        size_t      len;
        const char *text;

        lua_rawgeti(L, index, (int)i);
        text = lua_tolstring(L, -1, &len);
        memcpy(*bytes, text, len + 1);
        *words++ = *bytes;
        *bytes += len + 1;
        lua_pop(L, 1);
    }
    *words++ = NULL;
    return words;
}

/* (argv, cwd, env, has_input) */
static struct start_job *new_start(lua_State *L, const char *cwd)
{
    size_t            argc, envc = 0, cwd_bytes = strlen(cwd) + 1;
    size_t            argv_bytes = measure(L, 1, &argc);
    size_t            env_bytes  = lua_isnil(L, 3) ? 0 : measure(L, 3, &envc);
    size_t            pointers   = (argc + 1 + envc + 1) * sizeof(char *);
    struct start_job *job =
        ljob_new(L, sizeof(*job) + pointers + argv_bytes + env_bytes + cwd_bytes);
    char  *bytes = (char *)job->words + pointers;
    char **envp  = copy_words(L, 1, argc, job->words, &bytes);

    if (!lua_isnil(L, 3))
        copy_words(L, 3, envc, envp, &bytes);
    memcpy(bytes, cwd, cwd_bytes);
    job->spec = (struct child_spec){ .argv      = job->words,
                                     .envp      = lua_isnil(L, 3) ? environ : envp,
                                     .cwd       = bytes,
                                     .has_input = lua_toboolean(L, 4) };
    return job;
}

/* start(argv, cwd, env, has_input) -> process | nil, err: env is "NAME=value" strings, nil: ours */
static int start(lua_State *L)
{
    struct env       *env = env_of(L);
    struct lpath      cwd;
    const char       *wrong = lpath_read(L, 2, &cwd);
    struct start_job *job;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 4);
    if (wrong)
        return lerror_nil(L, "invalid", "%s", wrong);
    if (!env->children)
        return lerror_nil(L, "unavailable", "no processes are lent to this VM");
    if (children_is_full(env->children))
        return lerror_nil(L, "busy", "this worker has %d processes, and starts no more",
                          CHILDREN_MAX);
    job       = new_start(L, cwd.at);
    job->ljob = (struct ljob){ .work = work_start, .push = push_started, .free = forget_start };
    job->lane = env->lane_file;
    job->home = loop_inbox(env->loop);
    return ljob_start(L, &job->ljob, job->lane);
}

/* environ() -> { NAME = value } */
static int push_environ(lua_State *L)
{
    lua_newtable(L);
    for (char **entry = environ; *entry; entry++) {
        const char *equals = strchr(*entry, '=');

        if (!equals)
            continue;
        lua_pushlstring(L, *entry, (size_t)(equals - *entry));
        lua_pushstring(L, equals + 1);
        lua_rawset(L, -3);
    }
    return 1;
}

/* --- pipes ---------------------------------------------------------------------------------------------- */

static struct end *check_end(lua_State *L)
{
    static const char *const NAMES[] = { "stdin", "stdout", "stderr",
                                         NULL }; /* in the enum's order */
    struct process          *process = check_process(L);

    return &process->ends[luaL_checkoption(L, 2, NULL, NAMES)];
}

/* One try for who waits; false: it has to go on waiting. */
static bool try_read(struct end *end)
{
    end->got     = malloc(end->left);
    end->outcome = end->got ? pipe_read(&end->pipe, end->got, end->left) : PIPE_FAIL;
    end->error   = end->got ? errno : ENOMEM;
    if (end->outcome > 0)
        return true;
    free(end->got);
    end->got = NULL;
    return end->outcome != PIPE_WAIT;
}

static bool try_write(struct end *end)
{
    while (end->left > 0) {
        end->outcome = pipe_write(&end->pipe, end->bytes, end->left);
        end->error   = errno;
        if (end->outcome < 0)
            return end->outcome != PIPE_WAIT;
        end->bytes += end->outcome;
        end->left -= (size_t)end->outcome;
    }
    end->outcome = 1;
    return true;
}

static void on_pipe(struct pipe_end *pipe)
{
    struct end *end = container_of(pipe, struct end, pipe);

    if (!end->task || end->outcome != PIPE_WAIT)
        return;
    if (end == &end->process->ends[END_IN] ? try_write(end) : try_read(end))
        task_wake(end->task);
}

/* What was waited for is closed: nobody knows how far it came. It is not reaped here: its task may be
 * about to end, and then those that it has started must still be found by its number. */
static void disarm(void *op)
{
    struct end *end = op;

    end->task = NULL;
    free(end->got);
    end->got = NULL;
    pipe_close(&end->pipe);
}

static int push_failure(lua_State *L, const struct end *end)
{
    return lerror_nil(L, "exec", "the pipe to the process failed: %s", strerror(end->error));
}

static void close_after_end(struct end *end)
{
    pipe_close(&end->pipe);
    reap_if_over(end->process);
}

static int push_read(lua_State *L, void *op)
{
    struct end *end = op;

    if (end->outcome > 0)
        lua_pushlstring(L, end->got, (size_t)end->outcome);
    free(end->got);
    end->got  = NULL;
    end->task = NULL;
    if (end->outcome > 0)
        return 1;
    close_after_end(end);
    return end->outcome == PIPE_END ? 0 : push_failure(L, end);
}

/* read(process, "stdout"|"stderr", bytes) -> string | nil (the end) | nil, err */
static int read_end(lua_State *L)
{
    struct end *end   = check_end(L);
    lua_Number  bytes = luaL_checknumber(L, 3);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (end->pipe.fd < 0)
        return 0;
    end->left = bytes < READ_BYTES ? (size_t)bytes : READ_BYTES;
    if (try_read(end))
        return push_read(L, end);
    end->task = task_current(L);
    return task_wait(L, end, disarm, push_read);
}

static int push_closed(lua_State *L)
{
    return lerror_nil(L, "closed", "the process reads no more");
}

static int push_written(lua_State *L, void *op)
{
    struct end *end = op;

    end->task = NULL;
    if (end->outcome > 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    pipe_close(&end->pipe);
    return end->outcome == PIPE_END ? push_closed(L) : push_failure(L, end);
}

/* write(process, "stdin", s) -> true | nil, err: the process has it, or its pipe */
static int write_end(lua_State *L)
{
    struct end *end = check_end(L);

    end->bytes = luaL_checklstring(L, 3, &end->left);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (end->pipe.fd < 0)
        return push_closed(L);
    if (try_write(end))
        return push_written(L, end);
    end->task = task_current(L);
    return task_wait(L, end, disarm, push_written);
}

/* close(process, "stdin"|"stdout"|"stderr") */
static int close_one(lua_State *L)
{
    struct end *end = check_end(L);

    close_end(end, PIPE_END);
    reap_if_over(end->process);
    return 0;
}

/* is_busy(process, which) -> boolean: another task waits for that pipe */
static int is_busy(lua_State *L)
{
    lua_pushboolean(L, check_end(L)->task != NULL);
    return 1;
}

/* --- its exit ------------------------------------------------------------------------------------------- */

static int push_status(lua_State *L, void *op)
{
    const struct process *process = check_process(L);
    const char           *name;

    if (!process->has_status)
        return lerror_nil(L, "closed", "the process ended with the task that started it");
    name = process->status < 0 ? sigabbrev_np(-process->status) : NULL;
    if (name)
        lua_pushfstring(L, "SIG%s", name);
    else
        lua_pushinteger(L, process->status);
    return 1;
}

/* wait(process, [seconds]) -> exit code, or the signal's name | nil, err */
static int wait_exit(lua_State *L)
{
    struct process *process = check_process(L);
    uint64_t        timeout = ltask_timeout_ms(L, 2);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (process->has_status || !process->child)
        return push_status(L, NULL);
    return waitq_wait(L, &process->waiters, push_status, timeout, ltask_push_timeout, NULL, NULL);
}

/* kill(process, signal) -> whether anybody was there to hear it */
static int kill_process(lua_State *L)
{
    static const char *const NAMES[]   = { "SIGTERM", "SIGKILL", "SIGINT",  "SIGHUP",  "SIGQUIT",
                                           "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGCONT", NULL };
    static const int         NUMBERS[] = { SIGTERM, SIGKILL, SIGINT,  SIGHUP, SIGQUIT,
                                           SIGUSR1, SIGUSR2, SIGSTOP, SIGCONT };
    struct process          *process   = check_process(L);
    int                      signal    = NUMBERS[luaL_checkoption(L, 2, NULL, NAMES)];

    lua_pushboolean(L, process->child && child_signal(process->child, signal));
    return 1;
}

/* pid(process) -> integer */
static int pid(lua_State *L)
{
    lua_pushinteger(L, check_process(L)->pid);
    return 1;
}

int lexec_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "start", start },     { "read", read_end },   { "write", write_end },
        { "close", close_one }, { "wait", wait_exit },  { "kill", kill_process },
        { "pid", pid },         { "is_busy", is_busy }, { "environ", push_environ },
        { NULL, NULL },
    };

    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_createtable(L, 0, 9);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
