#include "bind/lcrypto_job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "base/crypto_seal.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/ljob.h"
#include "bind/lstr.h"
#include "vm/task.h"
#include "vm/vm_state.h"

enum encoding { ENCODING_HEX, ENCODING_BASE64, ENCODING_BASE64_URL, ENCODING_RAW };

struct crypto_job {
    struct ljob ljob;
    int (*act)(struct crypto_job *job);
    enum crypto_hash hash;
    enum encoding    encoding;
    struct str       key, text, more; /* in `copies` */
    struct buf       out;
    int              rc;
    size_t           copied;
    char             copies[];
};

static struct crypto_job *job_of(struct ljob *ljob)
{
    return container_of(ljob, struct crypto_job, ljob);
}

/* --- what is computed, on a thread of the pool ----------------------------------------------------- */

static void encode(struct crypto_job *job, struct str bytes)
{
    switch (job->encoding) {
    case ENCODING_HEX: codec_hex(&job->out, bytes); break;
    case ENCODING_BASE64: codec_base64(&job->out, bytes, CODEC_BASE64); break;
    case ENCODING_BASE64_URL: codec_base64(&job->out, bytes, CODEC_BASE64_URL); break;
    case ENCODING_RAW: buf_add_str(&job->out, bytes); break;
    }
}

static int act_hash(struct crypto_job *job)
{
    char digest[CRYPTO_DIGEST_BYTES_MAX];

    crypto_digest(job->hash, job->text, digest);
    encode(job, str_make(digest, crypto_digest_bytes(job->hash)));
    return 0;
}

static int act_hmac(struct crypto_job *job)
{
    char digest[CRYPTO_DIGEST_BYTES_MAX];

    crypto_hmac(job->hash, job->key, job->text, digest);
    encode(job, str_make(digest, crypto_digest_bytes(job->hash)));
    return 0;
}

static int act_seal(struct crypto_job *job)
{
    size_t len    = job->text.len + CRYPTO_SEAL_BYTES;
    char  *sealed = malloc(len);
    int    rc     = sealed ? crypto_seal(job->key, job->text, job->more, sealed) : ERR_MEMORY;

    if (rc == 0)
        encode(job, str_make(sealed, len));
    free(sealed);
    return rc;
}

static int unseal_bytes(struct crypto_job *job, struct str sealed)
{
    char *to;

    if (sealed.len < CRYPTO_SEAL_BYTES)
        return ERR_INVALID;
    to = buf_reserve(&job->out, sealed.len);
    if (!to)
        return ERR_MEMORY;
    job->out.len = sealed.len - CRYPTO_SEAL_BYTES;
    return crypto_unseal(job->key, sealed, job->more, to);
}

static int act_unseal(struct crypto_job *job)
{
    char  *sealed = malloc(codec_base64_bytes(job->text));
    size_t len;
    int    rc = ERR_MEMORY;

    if (sealed)
        rc = codec_base64_decode(job->text, CODEC_BASE64_URL, sealed, &len)
                 ? unseal_bytes(job, str_make(sealed, len))
                 : ERR_INVALID;
    free(sealed);
    return rc;
}

/* --- the job ---------------------------------------------------------------------------------------- */

static void work(struct ljob *ljob)
{
    struct crypto_job *job = job_of(ljob);

    job->rc = job->act(job);
    if (job->rc == 0 && job->out.failed)
        job->rc = ERR_MEMORY;
}

static int push(lua_State *L, struct ljob *ljob)
{
    struct crypto_job *job = job_of(ljob);

    if (job->rc == ERR_INVALID)
        return 0;
    if (job->rc != 0)
        return lerror_nil(L, "unavailable", "no memory for so much");
    lua_pushlstring(L, job->out.len ? job->out.at : "", job->out.len);
    return 1;
}

static void forget(struct ljob *ljob)
{
    struct crypto_job *job = job_of(ljob);

    if (job->out.at)
        explicit_bzero(job->out.at, job->out.len);
    buf_fini(&job->out);
    explicit_bzero(job->copies, job->copied);
    free(job);
}

static struct str copy(struct crypto_job *job, struct str from)
{
    char *to = job->copies + job->copied;

    if (from.len)
        memcpy(to, from.at, from.len);
    job->copied += from.len;
    return str_make(to, from.len);
}

/* `return run(...)`: the strings of the call stand at these indices; 0: none. */
static int run(lua_State *L, const struct crypto_job *like, int key_at, int text_at, int more_at)
{
    struct str         key  = key_at ? lstr_opt(L, key_at) : STR_NONE;
    struct str         text = lstr_opt(L, text_at);
    struct str         more = more_at ? lstr_opt(L, more_at) : STR_NONE;
    struct crypto_job *job  = ljob_new(L, sizeof(*job) + key.len + text.len + more.len);

    job->ljob     = (struct ljob){ .work = work, .push = push, .free = forget };
    job->act      = like->act;
    job->hash     = like->hash;
    job->encoding = like->encoding;
    job->key      = copy(job, key);
    job->text     = copy(job, text);
    job->more     = copy(job, more);
    buf_init(&job->out, SIZE_MAX / 2); /* what came in bounds what goes out */
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

/* --- for Lua ----------------------------------------------------------------------------------------- */

static enum crypto_hash check_hash(lua_State *L, int index)
{
    static const char *const NAMES[] = { "md5", "sha1", "sha256", "sha384", "sha512", NULL };

    return (enum crypto_hash)luaL_checkoption(L, index, NULL, NAMES); /* in the enum's order */
}

static enum encoding check_encoding(lua_State *L, int index)
{
    static const char *const WORDS[] = { "hex", "base64", "base64url", "raw", NULL };

    return (enum encoding)luaL_checkoption(L, index, "hex", WORDS);
}

/* hash(name, s, [encoding]) -> string | nil, err */
static int hash(lua_State *L)
{
    struct crypto_job like = { .act      = act_hash,
                               .hash     = check_hash(L, 1),
                               .encoding = check_encoding(L, 3) };

    return run(L, &like, 0, 2, 0);
}

/* hmac(name, key, s, [encoding]) -> string | nil, err */
static int hmac(lua_State *L)
{
    struct crypto_job like = { .act      = act_hmac,
                               .hash     = check_hash(L, 1),
                               .encoding = check_encoding(L, 4) };

    return run(L, &like, 2, 3, 0);
}

/* seal(secret, s, [aad]) -> string | nil, err */
static int seal(lua_State *L)
{
    return run(L, &(struct crypto_job){ .act = act_seal, .encoding = ENCODING_BASE64_URL }, 1, 2,
               3);
}

/* unseal(secret, sealed, [aad]) -> string | nil: forged | nil, err */
static int unseal(lua_State *L)
{
    return run(L, &(struct crypto_job){ .act = act_unseal }, 1, 2, 3);
}

/* can_wait() -> boolean: code runs here that may be suspended */
static int can_wait(lua_State *L)
{
    lua_pushboolean(L, vm_of(L)->running && task_can_wait(L));
    return 1;
}

int lcrypto_job_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "hash", hash },         { "hmac", hmac },
                                          { "seal", seal },         { "unseal", unseal },
                                          { "can_wait", can_wait }, { NULL, NULL } };

    lua_createtable(L, 0, 5);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
