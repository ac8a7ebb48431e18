#include "bind/lpassword.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/password.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/ljob.h"

struct password_job {
    struct ljob           ljob;
    int                   rc;      /* of hashing */
    enum password_verdict verdict; /* of verifying */
    size_t                password_len, hash_len;
    char                  hash[PASSWORD_TEXT_MAX];
    char                  password[PASSWORD_BYTES_MAX];
};

static struct password_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct password_job, ljob);
}

static struct str password_of(const struct password_job *job)
{
    return str_make(job->password, job->password_len);
}

static void forget(struct ljob *ljob)
{
    struct password_job *job = job_of(ljob);

    explicit_bzero(job->password, sizeof(job->password));
    free(job);
}

static int push_no_memory(lua_State *L)
{
    return lerror_nil(L, "unavailable", "no memory for a password hash");
}

/* Raises nothing that its caller would have to clean up after. NULL: nil, err was pushed. */
static struct password_job *new_job(lua_State *L)
{
    size_t               len;
    const char          *password = luaL_checklstring(L, 1, &len);
    struct password_job *job;

    if (len > PASSWORD_BYTES_MAX) {
        lerror_nil(L, "invalid", "a password has at most %d bytes", PASSWORD_BYTES_MAX);
        return NULL;
    }
    job               = ljob_new(L, sizeof(*job));
    job->ljob.free    = forget;
    job->password_len = len;
    memcpy(job->password, password, len);
    return job;
}

/* --- hash ---------------------------------------------------------------------------------------- */

static void work_hash(struct ljob *ljob)
{
    struct password_job *job = job_of(ljob);

    job->rc = password_hash(password_of(job), job->hash);
}

static int push_hash(lua_State *L, struct ljob *ljob)
{
    struct password_job *job = job_of(ljob);

    if (job->rc != 0)
        return push_no_memory(L);
    lua_pushstring(L, job->hash);
    return 1;
}

/* hash(password) -> string | nil, err */
static int hash(lua_State *L)
{
    struct password_job *job = new_job(L);

    if (!job)
        return 2;
    job->ljob.work = work_hash;
    job->ljob.push = push_hash;
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

/* --- verify -------------------------------------------------------------------------------------- */

static void work_verify(struct ljob *ljob)
{
    struct password_job *job = job_of(ljob);

    job->verdict = password_verify(password_of(job), str_make(job->hash, job->hash_len));
}

static int push_verdict(lua_State *L, struct ljob *ljob)
{
    switch (job_of(ljob)->verdict) {
    case PASSWORD_NO_HASH:
        return lerror_nil(L, "bad_hash", "this is no argon2id hash that srv would compute");
    case PASSWORD_NO_MEMORY: return push_no_memory(L);
    default: lua_pushboolean(L, job_of(ljob)->verdict == PASSWORD_RIGHT); return 1;
    }
}

/* verify(password, hash) -> boolean | nil, err */
static int verify(lua_State *L)
{
    size_t               len;
    const char          *text = luaL_checklstring(L, 2, &len);
    struct password_job *job  = new_job(L);

    if (!job)
        return 2;
    job->ljob.work = work_verify;
    job->ljob.push = push_verdict;
    job->hash_len  = len < PASSWORD_TEXT_MAX ? len : 0; /* longer is no hash, and nor is nothing */
    memcpy(job->hash, text, job->hash_len);
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

int lpassword_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "hash", hash }, { "verify", verify }, { NULL, NULL } };

    lua_createtable(L, 0, 2);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
