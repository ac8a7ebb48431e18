#include "bind/lcrypto.h"

#include <lauxlib.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/crypto.h"
#include "base/rand.h"

enum {
    SIGNATURE_BYTES  = 32, /* SHA-256 */
    SIGNATURE_LEN    = 43, /* as base64url without padding */
    RANDOM_BYTES_MAX = 1024,
};

static struct str check_str(lua_State *L, int index)
{
    size_t      len;
    const char *at = luaL_checklstring(L, index, &len);

    return str_make(at, len);
}

static void push_signature(lua_State *L, struct str key, struct str value)
{
    char       digest[CRYPTO_DIGEST_BYTES_MAX];
    struct buf text;

    crypto_hmac(CRYPTO_SHA256, key, value, digest);
    buf_init(&text, SIGNATURE_LEN + 1);
    codec_base64(&text, str_make(digest, SIGNATURE_BYTES), CODEC_BASE64_URL);
    lua_pushlstring(L, text.at, text.len);
    buf_fini(&text);
}

/* sign(key, value) -> string: HMAC-SHA256 as base64url */
static int sign(lua_State *L)
{
    push_signature(L, check_str(L, 1), check_str(L, 2));
    return 1;
}

/* verify(key, value, signature) -> boolean, in a time that tells nothing */
static int verify(lua_State *L)
{
    struct str given = check_str(L, 3);

    push_signature(L, check_str(L, 1), check_str(L, 2));
    lua_pushboolean(L, crypto_equal(check_str(L, -1), given));
    return 1;
}

/* random(n) -> string of n bytes */
static int random_bytes(lua_State *L)
{
    char        bytes[RANDOM_BYTES_MAX];
    lua_Integer n = luaL_checkinteger(L, 1);

    luaL_argcheck(L, n >= 1 && n <= RANDOM_BYTES_MAX, 1, "from 1 to 1024 bytes");
    rand_bytes(bytes, (size_t)n);
    lua_pushlstring(L, bytes, (size_t)n);
    return 1;
}

int lcrypto_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "sign", sign },
        { "verify", verify },
        { "random", random_bytes },
        { NULL, NULL },
    };

    lua_createtable(L, 0, 3);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
