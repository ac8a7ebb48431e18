#include "bind/lstdin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/ljob.h"

enum { READ_BYTES = 16 * 1024 };

struct stdin_job {
    struct ljob ljob;
    ssize_t     len; /* 0: the end; negative: -errno */
    char        bytes[READ_BYTES];
};

static struct stdin_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct stdin_job, ljob);
}

/* A descriptor that others share cannot be made non-blocking: it would be so for them as well. */
static void work(struct ljob *ljob)
{
    struct stdin_job *job = job_of(ljob);

    do
        job->len = read(STDIN_FILENO, job->bytes, sizeof(job->bytes));
    while (job->len < 0 && errno == EINTR);
    if (job->len < 0)
        job->len = -errno;
}

static int push(lua_State *L, struct ljob *ljob)
{
    struct stdin_job *job = job_of(ljob);

    if (job->len < 0)
        return lerror_nil(L, "fs", "stdin: %s", strerror((int)-job->len));
    if (job->len == 0)
        return 0;
    lua_pushlstring(L, job->bytes, (size_t)job->len);
    return 1;
}

static void give_back(struct ljob *ljob)
{
    free(job_of(ljob));
}

/* read() -> bytes | nil, at the end | nil, err */
static int lstdin_read(lua_State *L)
{
    struct stdin_job *job = ljob_new(L, sizeof(*job));

    job->ljob.work = work;
    job->ljob.push = push;
    job->ljob.free = give_back;
    return ljob_start(L, &job->ljob, env_of(L)->lane_file);
}

int lstdin_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "read", lstdin_read },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
