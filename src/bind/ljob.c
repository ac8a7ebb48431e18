#include "bind/ljob.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "ev/loop.h"
#include "vm/task.h"

static void run(struct job *job)
{
    struct ljob *self = container_of(job, struct ljob, job);

    self->work(self);
}

static void drop(struct job *job)
{
    struct ljob *self = container_of(job, struct ljob, job);

    self->free(self);
}

static void done(struct job *job)
{
    struct ljob *self = container_of(job, struct ljob, job);

    self->finished = true;
    if (self->waiter)
        task_wake(self->waiter);
    else
        self->free(self);
}

static void disarm(void *op)
{
    struct ljob *self = op;

    self->waiter = NULL;
    if (self->on_off)
        self->on_off(self);
    if (self->finished || job_cancel(&self->job))
        self->free(self);
}

static int push(lua_State *L, void *op)
{
    struct ljob *self  = op;
    int          count = self->push(L, self);

    self->free(self);
    return count;
}

static void prepare(struct ljob *self)
{
    self->job = (struct job){ .run = run, .done = done, .drop = drop };
    list_init(&self->job.link);
}

int ljob_start(lua_State *L, struct ljob *self, struct lane *lane)
{
    struct env  *env  = env_of(L);
    struct task *task = task_current(L);

    prepare(self);
    if (task_is_cancelled(task)) {
        self->finished = true;
        disarm(self);
        return task_stop(L);
    }
    self->waiter = task;
    if (lane_submit(lane, &self->job, loop_inbox(env->loop)) != 0) {
        self->free(self);
        return lerror_nil(L, "busy", "too much work waits for the threads of the pool");
    }
    return task_wait(L, self, disarm, push);
}

static void run_alone(struct job *job)
{
    struct ljob *self = container_of(job, struct ljob, job);

    self->work(self);
    self->finished = true;
}

/* The pool closes: what was not done yet is done here. */
static void drop_alone(struct job *job)
{
    struct ljob *self = container_of(job, struct ljob, job);

    if (!self->finished)
        self->work(self);
    self->free(self);
}

void ljob_run_alone(struct ljob *self, struct lane *lane, struct inbox *home)
{
    prepare(self);
    self->job.run  = run_alone;
    self->job.drop = drop_alone;
    if (lane_submit(lane, &self->job, home) == 0)
        return;
    self->work(self);
    self->free(self);
}

void *ljob_new(lua_State *L, size_t bytes)
{
    void *memory;

    task_current(L);
    memory = calloc(1, bytes);
    if (!memory)
        luaL_error(L, "not enough memory");
    return memory;
}
