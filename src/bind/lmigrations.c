/* Reading a folder blocks, so a job of the file lane does it. */
#include "bind/lmigrations.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/sources.h"
#include "data/migrations.h"
#include "ev/loop.h"
#include "ev/pool.h"
#include "vm/task.h"

struct lreading {
    struct job        job;
    struct task      *task; /* NULL: nobody waits */
    bool              finished;
    int               rc;
    struct err        err;
    struct migrations migrations;
    char              dialect[16];
    char              folder[PATH_MAX];
};

static void free_reading(struct lreading *reading)
{
    migrations_fini(&reading->migrations);
    free(reading);
}

static void run_reading(struct job *job)
{
    struct lreading *reading = container_of(job, struct lreading, job);

    reading->rc =
        migrations_read(&reading->migrations, reading->folder, reading->dialect, &reading->err);
}

static void drop_reading(struct job *job)
{
    free_reading(container_of(job, struct lreading, job));
}

static void on_read(struct job *job)
{
    struct lreading *reading = container_of(job, struct lreading, job);

    reading->finished = true;
    if (reading->task)
        task_wake(reading->task);
    else
        free_reading(reading);
}

static void disarm_reading(void *op)
{
    struct lreading *reading = op;

    reading->task = NULL;
    if (reading->finished || job_cancel(&reading->job))
        free_reading(reading);
}

static void push_migration(lua_State *L, const struct migration *migration)
{
    lua_createtable(L, 0, 4);
    lua_pushnumber(L, (lua_Number)migration->number);
    lua_setfield(L, -2, "number");
    lua_pushstring(L, migration->file);
    lua_setfield(L, -2, "file");
    lua_pushlstring(L, migration->text, migration->text_len);
    lua_setfield(L, -2, "text");
    lua_pushstring(L, migration->digest);
    lua_setfield(L, -2, "digest");
}

static int push_reading(lua_State *L, void *op)
{
    struct lreading   *reading    = op;
    struct migrations *migrations = &reading->migrations;
    int                count      = 1;

    if (reading->rc != 0) {
        count = lerror_nil(L, reading->rc == ERR_NOT_FOUND ? "not_found" : "fs", "%s",
                           reading->err.text);
    } else {
        lua_createtable(L, (int)migrations->count, 0);
        for (size_t i = 0; i < migrations->count; i++) {
            push_migration(L, &migrations->list[i]);
            lua_rawseti(L, -2, (int)i + 1);
        }
    }
    free_reading(reading);
    return count;
}

/* A folder's name is one in the app's folder. */
static int resolve(char *to, size_t room, const char *path, const char *app_root)
{
    bool as_it_is = path[0] == '/' || !app_root;
    int  len =
        as_it_is ? snprintf(to, room, "%s", path) : snprintf(to, room, "%s/%s", app_root, path);

    return len > 0 && (size_t)len < room ? 0 : -1;
}

/* read(folder, dialect) -> list | nil, err */
static int read_migrations(lua_State *L)
{
    struct env      *env     = env_of(L);
    const char      *folder  = luaL_checkstring(L, 1);
    const char      *dialect = luaL_checkstring(L, 2);
    struct task     *task    = task_current(L);
    struct lreading *reading = calloc(1, sizeof(*reading));

    if (!reading)
        return luaL_error(L, "not enough memory");
    reading->task = task;
    reading->job  = (struct job){ .run = run_reading, .done = on_read, .drop = drop_reading };
    list_init(&reading->job.link);
    snprintf(reading->dialect, sizeof(reading->dialect), "%s", dialect);
    if (resolve(reading->folder, sizeof(reading->folder), folder, env->app_root) != 0 ||
        lane_submit(env->lane_file, &reading->job, loop_inbox(env->loop)) != 0) {
        free_reading(reading);
        return lerror_nil(L, "busy", "cannot read the migrations in %s now", folder);
    }
    sources_add(env->sources, reading->folder);
    return task_wait(L, reading, disarm_reading, push_reading);
}

int lmigrations_open(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, read_migrations);
    lua_setfield(L, -2, "read");
    return 1;
}
