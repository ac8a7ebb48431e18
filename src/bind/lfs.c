#include "bind/lfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/fs_replace.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/ljob.h"
#include "bind/lpath.h"
#include "bind/lstr.h"

struct fs_job {
    struct ljob ljob;
    int (*act)(struct fs_job *job); /* on a thread of the pool */
    int (*push_done)(lua_State *L, struct fs_job *job);

    const char *path, *other; /* in `copies` */
    struct str  bytes;
    size_t      limit;
    bool        recursive;

    int            rc;
    struct err     err;
    struct buf     out;
    struct fs_stat stat;
    char           copies[];
};

static struct fs_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct fs_job, ljob);
}

/* --- jobs ------------------------------------------------------------------------------------------ */

static void work(struct ljob *ljob)
{
    struct fs_job *job = job_of(ljob);

    job->rc = job->act(job);
}

static int push(lua_State *L, struct ljob *ljob)
{
    struct fs_job *job = job_of(ljob);

    if (job->rc != 0)
        return lerror_nil_err(L, job->rc == ERR_SYSTEM ? "fs" : NULL, &job->err);
    return job->push_done(L, job);
}

static void forget(struct ljob *ljob)
{
    struct fs_job *job = job_of(ljob);

    buf_fini(&job->out);
    free(job);
}

static const atomic_bool *stop_of(const struct fs_job *job)
{
    return &job->ljob.job.cancelled;
}

static const char *copy(char **to, const char *from, size_t len)
{
    char *begin = *to;

    memcpy(begin, from, len);
    begin[len] = 0;
    *to += len + 1;
    return begin;
}

/* What a call is given. */
struct ask {
    struct lpath path, other;
    struct str   bytes;
};

static struct fs_job *new_job(lua_State *L, const struct ask *ask)
{
    size_t         path_len = strlen(ask->path.at), other_len = strlen(ask->other.at);
    struct fs_job *job =
        ljob_new(L, sizeof(*job) + path_len + 1 + other_len + 1 + ask->bytes.len + 1);
    char *to = job->copies;

    job->ljob  = (struct ljob){ .work = work, .push = push, .free = forget };
    job->path  = copy(&to, ask->path.at, path_len);
    job->other = copy(&to, ask->other.at, other_len);
    job->bytes =
        str_make(copy(&to, ask->bytes.len ? ask->bytes.at : "", ask->bytes.len), ask->bytes.len);
    return job;
}

static int start(lua_State *L, struct fs_job *job)
{
    return ljob_start(L, &job->ljob, env_of(L)->lane_file);
}

static int push_true(lua_State *L, struct fs_job *job)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* `return run(...)` for calls whose result is true: the path is at 1. */
static int run(lua_State *L, int (*act)(struct fs_job *job), const char *wrong,
               const struct ask *ask)
{
    struct fs_job *job;

    if (wrong)
        return lerror_nil(L, "invalid", "%s", wrong);
    job            = new_job(L, ask);
    job->act       = act;
    job->push_done = push_true;
    job->recursive = lua_toboolean(L, 2);
    return start(L, job);
}

static int run_on_path(lua_State *L, int (*act)(struct fs_job *job))
{
    struct ask  ask   = { 0 };
    const char *wrong = lpath_read(L, 1, &ask.path);

    return run(L, act, wrong, &ask);
}

static int run_with_bytes(lua_State *L, int (*act)(struct fs_job *job))
{
    struct ask  ask   = { 0 };
    const char *wrong = lpath_read(L, 1, &ask.path);

    ask.bytes = lstr_check(L, 2);
    return run(L, act, wrong, &ask);
}

static int run_on_two(lua_State *L, int (*act)(struct fs_job *job))
{
    struct ask  ask   = { 0 };
    const char *wrong = lpath_read(L, 1, &ask.path);

    if (!wrong)
        wrong = lpath_read(L, 2, &ask.other);
    return run(L, act, wrong, &ask);
}

/* --- reading ---------------------------------------------------------------------------------------- */

static int act_read(struct fs_job *job)
{
    return fs_read(job->path, job->limit, &job->out, stop_of(job), &job->err);
}

static int push_bytes(lua_State *L, struct fs_job *job)
{
    lua_pushlstring(L, job->out.len ? job->out.at : "", job->out.len);
    return 1;
}

/* read(path, limit) -> string | nil, err */
static int read_file(lua_State *L)
{
    struct ask     ask   = { 0 };
    const char    *wrong = lpath_read(L, 1, &ask.path);
    lua_Number     limit = luaL_checknumber(L, 2);
    struct fs_job *job;

    if (wrong)
        return lerror_nil(L, "invalid", "%s", wrong);
    job            = new_job(L, &ask);
    job->act       = act_read;
    job->push_done = push_bytes;
    job->limit     = (size_t)limit;
    buf_init(&job->out, job->limit + 1);
    return start(L, job);
}

static int act_stat(struct fs_job *job)
{
    return fs_stat(job->path, &job->stat, &job->err);
}

static int push_stat(lua_State *L, struct fs_job *job)
{
    static const char *const KINDS[] = {
        [FS_FILE] = "file", [FS_FOLDER] = "folder", [FS_OTHER] = "other"
    };
    char mode[16];

    snprintf(mode, sizeof(mode), "%04o", job->stat.mode);
    lua_createtable(L, 0, 4);
    lfield_set_number(L, "size", (lua_Number)job->stat.size);
    lfield_set_number(L, "mtime", job->stat.mtime);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "mode");
    lua_pushstring(L, KINDS[job->stat.kind]);
    lua_setfield(L, -2, "kind");
    return 1;
}

static int act_list(struct fs_job *job)
{
    return fs_list(job->path, &job->out, &job->err);
}

static int push_names(lua_State *L, struct fs_job *job)
{
    int count = 0;

    lua_newtable(L);
    for (size_t at = 0; at < job->out.len; at += strlen(job->out.at + at) + 1) {
        lua_pushstring(L, job->out.at + at);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

static int look(lua_State *L, int (*act)(struct fs_job *job),
                int (*push_done)(lua_State *L, struct fs_job *job))
{
    struct ask     ask   = { 0 };
    const char    *wrong = lpath_read(L, 1, &ask.path);
    struct fs_job *job;

    if (wrong)
        return lerror_nil(L, "invalid", "%s", wrong);
    job            = new_job(L, &ask);
    job->act       = act;
    job->push_done = push_done;
    buf_init(&job->out, FS_NAMES_BYTES_MAX);
    return start(L, job);
}

/* stat(path) -> { size, mtime, mode, kind } | nil, err */
static int stat_path(lua_State *L)
{
    return look(L, act_stat, push_stat);
}

/* list(path) -> names | nil, err */
static int list(lua_State *L)
{
    return look(L, act_list, push_names);
}

/* --- changing: each gives true | nil, err ------------------------------------------------------------ */

static int act_write(struct fs_job *job)
{
    return fs_write(job->path, job->bytes, stop_of(job), &job->err);
}

/* write(path, s) */
static int write_file(lua_State *L)
{
    return run_with_bytes(L, act_write);
}

static int act_append(struct fs_job *job)
{
    return fs_append(job->path, job->bytes, stop_of(job), &job->err);
}

/* append(path, s) */
static int append(lua_State *L)
{
    return run_with_bytes(L, act_append);
}

static int act_mkdir(struct fs_job *job)
{
    return fs_mkdir(job->path, &job->err);
}

/* mkdir(path) */
static int make_folder(lua_State *L)
{
    return run_on_path(L, act_mkdir);
}

static int act_remove(struct fs_job *job)
{
    return fs_remove(job->path, job->recursive, stop_of(job), &job->err);
}

/* remove(path, recursive) */
static int remove_path(lua_State *L)
{
    return run_on_path(L, act_remove);
}

static int act_rename(struct fs_job *job)
{
    return fs_rename(job->path, job->other, &job->err);
}

/* rename(from, to) */
static int rename_path(lua_State *L)
{
    return run_on_two(L, act_rename);
}

static int act_copy(struct fs_job *job)
{
    return fs_copy(job->path, job->other, false, stop_of(job), &job->err);
}

static int act_copy_as_new(struct fs_job *job)
{
    return fs_copy(job->path, job->other, true, stop_of(job), &job->err);
}

/* copy(from, to, as_new): TO gets the mode of FROM, or keeps its own */
static int copy_file(lua_State *L)
{
    return run_on_two(L, lua_toboolean(L, 3) ? act_copy_as_new : act_copy);
}

static int act_touch(struct fs_job *job)
{
    return fs_touch(job->path, &job->err);
}

/* touch(path) */
static int touch(lua_State *L)
{
    return run_on_path(L, act_touch);
}

int lfs_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "read", read_file },
        { "stat", stat_path },
        { "list", list },
        { "write", write_file },
        { "append", append },
        { "mkdir", make_folder },
        { "remove", remove_path },
        { "rename", rename_path },
        { "copy", copy_file },
        { "touch", touch },
        { NULL, NULL },
    };

    lua_createtable(L, 0, 10);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
