#include "bind/lkey.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/crypto_key.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lstr.h"

struct key_job {
    struct ljob         ljob;
    enum crypto_scheme  scheme;
    struct str          pem, bytes, given; /* in `copies` */
    int                 rc;
    enum crypto_verdict verdict;
    size_t              len;
    char                signature[CRYPTO_SIGNATURE_BYTES_MAX];
    struct err          err;
    size_t              copied;
    char                copies[];
};

static struct key_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct key_job, ljob);
}

static void forget(struct ljob *ljob)
{
    struct key_job *job = job_of(ljob);

    explicit_bzero(job->copies, job->copied);
    free(job);
}

static struct str copy(struct key_job *job, struct str from)
{
    char *to = job->copies + job->copied;

    memcpy(to, from.at, from.len);
    job->copied += from.len;
    return str_make(to, from.len);
}

/* (scheme, pem, bytes, [signature]) */
static struct key_job *new_job(lua_State *L)
{
    static const char *const NAMES[] = {
        "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", NULL
    }; /* in the enum's order */
    enum crypto_scheme scheme = (enum crypto_scheme)luaL_checkoption(L, 1, NULL, NAMES);
    struct str         pem = lstr_opt(L, 2), bytes = lstr_opt(L, 3), given = lstr_opt(L, 4);
    struct key_job    *job = ljob_new(L, sizeof(*job) + pem.len + bytes.len + given.len);

    job->ljob.free = forget;
    job->scheme    = scheme;
    job->pem       = copy(job, pem);
    job->bytes     = copy(job, bytes);
    job->given     = copy(job, given);
    return job;
}

static int push_bad_key(lua_State *L, const struct key_job *job)
{
    return lerror_nil(L, "bad_key", "%s", job->err.text);
}

static void work_sign(struct ljob *ljob)
{
    struct key_job *job = job_of(ljob);

    job->rc = crypto_sign(job->scheme, job->pem, job->bytes, job->signature, &job->len, &job->err);
}

static int push_signature(lua_State *L, struct ljob *ljob)
{
    struct key_job *job = job_of(ljob);

    if (job->rc != 0)
        return push_bad_key(L, job);
    lua_pushlstring(L, job->signature, job->len);
    return 1;
}

/* sign(scheme, pem, bytes) -> signature | nil, err */
static int sign(lua_State *L)
{
    struct key_job *job = new_job(L);

    job->ljob.work = work_sign;
    job->ljob.push = push_signature;
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

static void work_verify(struct ljob *ljob)
{
    struct key_job *job = job_of(ljob);

    job->verdict = crypto_verify(job->scheme, job->pem, job->bytes, job->given, &job->err);
}

static int push_verdict(lua_State *L, struct ljob *ljob)
{
    struct key_job *job = job_of(ljob);

    if (job->verdict == CRYPTO_BAD_KEY)
        return push_bad_key(L, job);
    lua_pushboolean(L, job->verdict == CRYPTO_GENUINE);
    return 1;
}

/* verify(scheme, pem, bytes, signature) -> boolean | nil, err */
static int verify(lua_State *L)
{
    struct key_job *job = new_job(L);

    job->ljob.work = work_verify;
    job->ljob.push = push_verdict;
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

int lkey_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "sign", sign }, { "verify", verify }, { NULL, NULL } };

    lua_createtable(L, 0, 2);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
