#include "bind/lfs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/temps.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lpath.h"
#include "ev/loop.h"
#include "vm/task.h"
#include "vm/vm_state.h"

static const char METATABLE[] = "srv.fs.File";

enum { READ_BYTES_MAX = 1 << 20, SUFFIX_BYTES_MAX = 64 };

struct temp;

/* The userdata. */
struct file {
    struct handle handle;
    struct temp  *temp; /* ends the file with its task, if it is a temporary one */
    struct held   held; /* by `holder`: closes it, should that be cancelled */
    struct task  *holder;
    int           fd;   /* -1: closed */
    bool          busy; /* a job has the descriptor */
    bool          appends;
    int64_t       position;
    struct lane  *lane; /* borrowed, as `home`, for closing at the end */
    struct inbox *home;
};

/* Of a temporary file: closes and removes it when its task ends. */
struct temp {
    struct held   held;
    struct ljob   ljob;
    struct file  *file; /* NULL: collected */
    struct lane  *lane;
    struct inbox *home;
    char          path[PATH_MAX];
};

/* --- closing what nobody has closed ------------------------------------------------------------------- */

struct closing {
    struct ljob ljob;
    int         fd;
};

static void work_close(struct ljob *ljob)
{
    close(container_of(ljob, struct closing, ljob)->fd);
}

static void free_closing(struct ljob *ljob)
{
    free(container_of(ljob, struct closing, ljob));
}

/* Closing may write, and so wait for a disk. */
static void close_aside(struct file *file)
{
    int             fd      = file->fd;
    struct closing *closing = fd >= 0 ? calloc(1, sizeof(*closing)) : NULL;

    file->fd = -1;
    handle_unlink(&file->handle);
    if (closing) {
        closing->ljob = (struct ljob){ .work = work_close, .free = free_closing };
        closing->fd   = fd;
        ljob_run_alone(&closing->ljob, file->lane, file->home);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void cut(struct handle *handle)
{
    close_aside(container_of(handle, struct file, handle));
}

static int collect(lua_State *L)
{
    struct file *file = luaL_checkudata(L, 1, METATABLE);

    if (file->temp)
        file->temp->file = NULL;
    task_unhold(&file->held);
    if (!file->busy)
        close_aside(file);
    return 0;
}

/* --- whose it is ------------------------------------------------------------------------------------------ */

static void hold(struct file *file, struct task *task)
{
    file->holder = task;
    task_hold(task, &file->held);
}

/* A task that returned may have handed the file on, to its parent at the nearest. */
static void release(struct held *held)
{
    struct file *file   = container_of(held, struct file, held);
    struct task *parent = task_parent(file->holder);

    if (task_is_cancelled(file->holder)) {
        if (!file->busy)
            close_aside(file);
    } else if (parent) {
        hold(file, parent);
    }
}

/* --- calls --------------------------------------------------------------------------------------------- */

struct file_job {
    struct ljob  ljob;
    struct file *file; /* NULL: called off. Else alive, for it is the call's first argument */
    int (*act)(struct file_job *job);
    int (*push_done)(lua_State *L, struct file_job *job);

    int           fd;
    bool          is_off;  /* the wait was called off: close it */
    bool          owns_fd; /* the file has not got it yet, or has it no more */
    struct temps *temps;
    bool       of_root; /* a temporary file ends with the request, not with the task that asked */
    bool       appends;
    int64_t    position;
    int        flags; /* of open() */
    size_t     len;   /* of `bytes`: room, then what was read, or what is to be written */
    size_t     done;
    int        rc;
    struct err err;
    char       path[PATH_MAX];
    char       bytes[];
};

static struct file_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct file_job, ljob);
}

static void work(struct ljob *ljob)
{
    struct file_job *job = job_of(ljob);

    job->rc = job->act(job);
}

static void forget(struct ljob *ljob)
{
    struct file_job *job = job_of(ljob);

    if (job->file)
        job->file->busy = false;
    if ((job->is_off || job->owns_fd) && job->fd >= 0)
        close(job->fd);
    free(job);
}

static int push_fault(lua_State *L, const struct file_job *job)
{
    return lerror_nil_err(L, job->rc == ERR_SYSTEM ? "fs" : NULL, &job->err);
}

static void on_off(struct ljob *ljob)
{
    struct file_job *job = job_of(ljob);

    job->is_off     = true;
    job->file->busy = false;
    job->file->fd   = -1;
    handle_unlink(&job->file->handle);
    job->file = NULL;
}

static int push(lua_State *L, struct ljob *ljob)
{
    struct file_job *job = job_of(ljob);

    return job->push_done(L, job);
}

static struct file_job *new_job(lua_State *L, struct file *file, size_t room)
{
    struct file_job *job = ljob_new(L, sizeof(*job) + room);

    job->ljob     = (struct ljob){ .work = work, .push = push, .free = forget, .on_off = on_off };
    job->file     = file;
    job->appends  = file->appends;
    job->fd       = file->fd;
    job->position = file->position;
    job->len      = room;
    return job;
}

static int start(lua_State *L, struct file_job *job)
{
    job->file->busy = true;
    return ljob_start(L, &job->ljob, job->file->lane);
}

/* A file that can be worked with, or NULL and nil, err on the stack. */
static struct file *check_file(lua_State *L)
{
    struct file *file = luaL_checkudata(L, 1, METATABLE);

    if (file->fd >= 0)
        return file;
    lerror_nil(L, "closed", "the file is closed");
    return NULL;
}

/* is_busy(file) -> boolean: a call of another task is under way */
static int is_busy(lua_State *L)
{
    lua_pushboolean(L, ((struct file *)luaL_checkudata(L, 1, METATABLE))->busy);
    return 1;
}

/* --- open ------------------------------------------------------------------------------------------------ */

static struct file *new_file(lua_State *L)
{
    struct env  *env  = env_of(L);
    struct file *file = lclass_new(L, METATABLE, sizeof(*file));

    *file = (struct file){
        .handle = { .cut = cut }, .fd = -1, .lane = env->lane_file, .home = loop_inbox(env->loop)
    };
    list_init(&file->handle.link);
    list_init(&file->held.link);
    file->held.release = release;
    return file;
}

static int act_open(struct file_job *job)
{
    int rc = fs_open(job->path, job->flags, &job->fd, &job->err);

    job->owns_fd = rc == 0; /* until the file has it */
    return rc;
}

/* The file took the place of the path, at 1. */
static int push_opened(lua_State *L, struct file_job *job)
{
    struct file *file = job->file;

    if (job->rc != 0)
        return push_fault(L, job);
    file->fd     = job->fd;
    job->owns_fd = false;
    handle_link(&file->handle, vm_of(L));
    if (!file->temp)
        hold(file, job->ljob.waiter);
    lua_pushvalue(L, 1);
    return 1;
}

static int flags_of(const char *mode)
{
    int how = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;

    if (mode[0] == 'w')
        how |= strchr(mode, 'x') ? O_CREAT | O_EXCL : O_CREAT | O_TRUNC;
    if (mode[0] == 'a')
        how |= O_CREAT | O_APPEND;
    return how;
}

/* open(path, mode) -> file | nil, err: mode is r, w, a, with + and, behind a w, x */
static int open_file(lua_State *L)
{
    struct lpath     path;
    const char      *wrong = lpath_read(L, 1, &path);
    int              flags = flags_of(luaL_checkstring(L, 2));
    struct file     *file;
    struct file_job *job;

    if (wrong)
        return lerror_nil(L, "invalid", "%s", wrong);
    lua_settop(L, 1);
    file = new_file(L);
    lua_replace(L, 1);
    job            = new_job(L, file, 0);
    job->act       = act_open;
    job->push_done = push_opened;
    job->flags     = flags;
    file->appends  = flags & O_APPEND;
    memcpy(job->path, path.at, strlen(path.at) + 1);
    return start(L, job);
}

/* --- read, write, close ------------------------------------------------------------------------------------ */

static int act_read(struct file_job *job)
{
    ssize_t n = pread(job->fd, job->bytes, job->len, job->position);

    if (n < 0)
        return fs_fail(&job->err, "the file");
    job->done = (size_t)n;
    return 0;
}

static int push_read(lua_State *L, struct file_job *job)
{
    if (job->rc != 0)
        return push_fault(L, job);
    if (job->done == 0)
        return 0;
    lua_pushlstring(L, job->bytes, job->done);
    job->file->position += (int64_t)job->done;
    return 1;
}

/* read(file, bytes) -> string | nil (the end) | nil, err */
static int read_file(lua_State *L)
{
    lua_Number       bytes = luaL_checknumber(L, 2);
    struct file     *file  = check_file(L);
    struct file_job *job;

    if (!file)
        return 2;
    job            = new_job(L, file, bytes < READ_BYTES_MAX ? (size_t)bytes : READ_BYTES_MAX);
    job->act       = act_read;
    job->push_done = push_read;
    return start(L, job);
}

static int act_write(struct file_job *job)
{
    struct str bytes = str_make(job->bytes, job->len);
    int        rc = fs_write_at(job->fd, bytes, job->position, &job->done, &job->ljob.job.cancelled,
                                "the file", &job->err);
    struct stat st;

    job->position += (int64_t)job->done;
    if (job->appends && fstat(job->fd, &st) == 0)
        job->position = st.st_size;
    return rc;
}

static int push_written(lua_State *L, struct file_job *job)
{
    job->file->position = job->position;
    if (job->rc != 0)
        return push_fault(L, job);
    lua_pushboolean(L, 1);
    return 1;
}

/* write(file, s) -> true | nil, err */
static int write_file(lua_State *L)
{
    size_t           len;
    const char      *bytes = luaL_checklstring(L, 2, &len);
    struct file     *file  = check_file(L);
    struct file_job *job;

    if (!file)
        return 2;
    job            = new_job(L, file, len);
    job->act       = act_write;
    job->push_done = push_written;
    memcpy(job->bytes, bytes, len);
    return start(L, job);
}

static int act_close(struct file_job *job)
{
    int fd = job->fd;

    job->fd = -1;
    return close(fd) == 0 || errno == EINTR ? 0 : fs_fail(&job->err, "the file");
}

static int push_closed(lua_State *L, struct file_job *job)
{
    if (job->rc != 0)
        return push_fault(L, job);
    lua_pushboolean(L, 1);
    return 1;
}

/* close(file) -> true | nil, err: the job has the descriptor from here on */
static int close_file(lua_State *L)
{
    struct file     *file = luaL_checkudata(L, 1, METATABLE);
    struct file_job *job;

    if (file->fd < 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    job            = new_job(L, file, 0);
    job->act       = act_close;
    job->push_done = push_closed;
    job->owns_fd   = true;
    file->fd       = -1;
    handle_unlink(&file->handle);
    return ljob_start(L, &job->ljob, file->lane);
}

/* seek(file, "set"|"cur"|"end", offset) -> position | nil, err. Does not wait: the kernel knows. */
static int seek(lua_State *L)
{
    static const char *const WORDS[] = { "set", "cur", "end", NULL };
    int                      whence  = luaL_checkoption(L, 2, NULL, WORDS);
    int64_t                  to      = (int64_t)luaL_checknumber(L, 3);
    struct file             *file    = check_file(L);
    struct stat              st;

    if (!file)
        return 2;
    if (whence == 1)
        to += file->position;
    if (whence == 2 && fstat(file->fd, &st) == 0)
        to += st.st_size;
    if (to < 0)
        return lerror_nil(L, "fs", "a file has nothing before its begin");
    file->position = to;
    lua_pushnumber(L, (lua_Number)to);
    return 1;
}

/* --- temporary files --------------------------------------------------------------------------------------- */

static void work_remove(struct ljob *ljob)
{
    unlink(container_of(ljob, struct temp, ljob)->path);
}

static void free_temp(struct ljob *ljob)
{
    free(container_of(ljob, struct temp, ljob));
}

static void release_temp(struct held *held)
{
    struct temp *temp = container_of(held, struct temp, held);
    struct file *file = temp->file;

    if (file) { /* whose task was called off: until it is collected its bytes would fill the disk */
        file->temp = NULL;
        if (!file->busy)
            close_aside(file);
    }
    temp->ljob = (struct ljob){ .work = work_remove, .free = free_temp };
    ljob_run_alone(&temp->ljob, temp->lane, temp->home);
}

/* Nobody holds the file before it is known: a job that was called off removes it. */
static void forget_temp(struct ljob *ljob)
{
    struct file_job *job = job_of(ljob);

    if (job->is_off && job->fd >= 0)
        unlink(job->path);
    forget(ljob);
}

static int act_temp(struct file_job *job)
{
    int rc = temps_file(job->temps, job->bytes, job->path, sizeof(job->path), &job->fd, &job->err);

    job->owns_fd = rc == 0;
    return rc;
}

static int push_temp(lua_State *L, struct file_job *job)
{
    struct temp *temp = job->rc == 0 ? calloc(1, sizeof(*temp)) : NULL;

    if (job->rc == 0 && !temp)
        return luaL_error(L, "not enough memory");
    if (job->rc == 0) {
        temp->held.release = release_temp;
        temp->lane         = job->file->lane;
        temp->home         = job->file->home;
        temp->file         = job->file;
        job->file->temp    = temp;
        memcpy(temp->path, job->path, sizeof(temp->path));
        list_init(&temp->held.link);
        task_hold(job->of_root ? task_root(job->ljob.waiter) : job->ljob.waiter, &temp->held);
    }
    if (push_opened(L, job) != 1)
        return 2;
    lua_pushstring(L, job->path);
    return 2;
}

/* temp(suffix, of_root) -> file, path | nil, err: it is removed when the task ends, or its root */
static int temp_file(lua_State *L)
{
    size_t           len;
    const char      *suffix  = luaL_checklstring(L, 1, &len);
    bool             of_root = lua_toboolean(L, 2);
    struct file     *file;
    struct file_job *job;

    luaL_argcheck(L, len < SUFFIX_BYTES_MAX, 1, "too long");
    lua_settop(L, 1);
    file           = new_file(L);
    job            = new_job(L, file, len + 1);
    job->ljob.free = forget_temp;
    job->act       = act_temp;
    job->push_done = push_temp;
    job->temps     = env_of(L)->temps;
    job->of_root   = of_root;
    memcpy(job->bytes, suffix, len);
    lua_replace(L, 1);
    return start(L, job);
}

int lfs_file_open(lua_State *L)
{
    static const luaL_Reg METHODS[]   = { { "__gc", collect }, { NULL, NULL } };
    static const luaL_Reg FUNCTIONS[] = {
        { "open", open_file },   { "temp", temp_file }, { "read", read_file },
        { "write", write_file }, { "seek", seek },      { "close", close_file },
        { "is_busy", is_busy },  { NULL, NULL },
    };

    lclass_add(L, METATABLE, METHODS);
    lua_createtable(L, 0, 7);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
