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
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lpath.h"
#include "bind/ltask.h"
#include "bind/process.h"
#include "ev/child.h"
#include "ev/loop.h"
#include "vm/task.h"
#include "vm/vm_state.h"
#include "vm/waitq.h"

static const char METATABLE[] = "srv.exec.Process";

enum { READ_BYTES = 64 * 1024 /* what a pipe holds */ };

static struct process *check_process(lua_State *L)
{
    struct process **box = luaL_checkudata(L, 1, METATABLE);

    return *box;
}

static int collect(lua_State *L)
{
    struct process **box = luaL_checkudata(L, 1, METATABLE);

    if (*box)
        process_let_go(*box);
    *box = NULL;
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

/* Box and process are there before the child is anybody's. */
static int push_started(lua_State *L, struct ljob *ljob)
{
    struct start_job *job = start_of(ljob);
    struct env       *env = env_of(L);
    struct process  **box;

    if (job->rc != 0)
        return lerror_nil_err(L, job->rc == ERR_SYSTEM ? "exec" : NULL, &job->err);
    box  = lclass_new(L, METATABLE, sizeof(*box));
    *box = process_new(vm_of(L), ljob->waiter);
    if (!*box)
        return luaL_error(L, "not enough memory");
    if (process_take(*box, env->loop, env->children, &job->start) != 0)
        return lerror_nil(L, "exec", "no memory or descriptor left to watch the process");
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

static struct process_end *check_end(lua_State *L)
{
    static const char *const NAMES[] = { "stdin", "stdout", "stderr",
                                         NULL }; /* in the enum's order */
    struct process          *process = check_process(L);

    return &process->ends[luaL_checkoption(L, 2, NULL, NAMES)];
}

static void disarm(void *op)
{
    process_call_off(op);
}

static int push_failure(lua_State *L, const struct process_end *end)
{
    return lerror_nil(L, "exec", "the pipe to the process failed: %s", strerror(end->error));
}

static int push_read(lua_State *L, void *op)
{
    struct process_end *end = op;

    if (end->outcome > 0)
        lua_pushlstring(L, end->got, (size_t)end->outcome);
    free(end->got);
    end->got  = NULL;
    end->task = NULL;
    if (end->outcome > 0)
        return 1;
    if (end->outcome == PIPE_FAIL) {
        process_close(end);
        return push_failure(L, end);
    }
    process_close(end);
    return 0;
}

/* read(process, "stdout"|"stderr", bytes) -> string | nil (the end) | nil, err */
static int read_end(lua_State *L)
{
    struct process_end *end   = check_end(L);
    lua_Number          bytes = luaL_checknumber(L, 3);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (end->pipe.fd < 0)
        return 0;
    end->left = bytes < READ_BYTES ? (size_t)bytes : READ_BYTES;
    if (process_try_read(end))
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
    struct process_end *end = op;

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
    struct process_end *end = check_end(L);

    end->bytes = luaL_checklstring(L, 3, &end->left);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (end->pipe.fd < 0)
        return push_closed(L);
    if (process_try_write(end))
        return push_written(L, end);
    end->task = task_current(L);
    return task_wait(L, end, disarm, push_written);
}

/* close(process, "stdin"|"stdout"|"stderr") */
static int close_one(lua_State *L)
{
    struct process_end *end = check_end(L);

    process_close(end);
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
    static const luaL_Reg METHODS[]   = { { "__gc", collect }, { NULL, NULL } };
    static const luaL_Reg FUNCTIONS[] = {
        { "start", start },     { "read", read_end },   { "write", write_end },
        { "close", close_one }, { "wait", wait_exit },  { "kill", kill_process },
        { "pid", pid },         { "is_busy", is_busy }, { "environ", push_environ },
        { NULL, NULL },
    };

    lclass_add(L, METATABLE, METHODS);
    lua_createtable(L, 0, 9);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
