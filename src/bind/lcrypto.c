/* What is computed lies in userdata until it is a string: whatever raises meanwhile, the collector
 * has it. */
#include "bind/lcrypto.h"

#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/crypto.h"
#include "base/crypto_seal.h"
#include "base/rand.h"
#include "base/uuid.h"
#include "bind/lstr.h"

enum { RANDOM_BYTES_MAX = 64 * 1024 };

/* --- encodings ------------------------------------------------------------------------------------ */

enum encoding { ENCODING_HEX, ENCODING_BASE64, ENCODING_BASE64_URL, ENCODING_RAW };

static enum encoding check_encoding(lua_State *L, int index)
{
    static const char *const WORDS[] = { "hex", "base64", "base64url", "raw", NULL };

    return (enum encoding)luaL_checkoption(L, index, "hex", WORDS);
}

/* Room for any encoding of BYTES: the encoders below never have to grow the buffer. */
static struct buf borrow_room(lua_State *L, size_t bytes)
{
    size_t room = bytes * 2 + 4;

    return (struct buf){ .at = lua_newuserdata(L, room), .room = room, .bytes_max = room };
}

static int push_encoded(lua_State *L, struct str bytes, enum encoding encoding)
{
    struct buf text;

    if (encoding == ENCODING_RAW)
        return lstr_push(L, bytes);
    text = borrow_room(L, bytes.len);
    switch (encoding) {
    case ENCODING_HEX: codec_hex(&text, bytes); break;
    case ENCODING_BASE64: codec_base64(&text, bytes, CODEC_BASE64); break;
    default: codec_base64(&text, bytes, CODEC_BASE64_URL);
    }
    return lstr_push(L, buf_str(&text));
}

/* encode(encoding, s) -> string */
static int encode(lua_State *L)
{
    return push_encoded(L, lstr_check(L, 2), check_encoding(L, 1));
}

/* decode(encoding, s) -> string | nil */
static int decode(lua_State *L)
{
    enum encoding encoding = check_encoding(L, 1);
    struct str    text     = lstr_check(L, 2);
    char         *to       = lua_newuserdata(L, text.len + 2);
    size_t        len      = text.len / 2;
    bool          is_sound = false;

    switch (encoding) {
    case ENCODING_HEX: is_sound = codec_hex_decode(text, to); break;
    case ENCODING_BASE64: is_sound = codec_base64_decode(text, CODEC_BASE64, to, &len); break;
    case ENCODING_BASE64_URL:
        is_sound = codec_base64_decode(text, CODEC_BASE64_URL, to, &len);
        break;
    case ENCODING_RAW: lua_pushvalue(L, 2); return 1;
    }
    if (!is_sound)
        return 0;
    lua_pushlstring(L, to, len);
    return 1;
}

/* --- digests -------------------------------------------------------------------------------------- */

static enum crypto_hash check_hash(lua_State *L, int index)
{
    static const char *const NAMES[] = { "md5", "sha1", "sha256", "sha384", "sha512", NULL };

    return (enum crypto_hash)luaL_checkoption(L, index, NULL, NAMES); /* in the enum's order */
}

/* hash(name, s, [encoding]) -> string */
static int hash(lua_State *L)
{
    char             digest[CRYPTO_DIGEST_BYTES_MAX];
    enum crypto_hash name = check_hash(L, 1);

    crypto_digest(name, lstr_check(L, 2), digest);
    return push_encoded(L, str_make(digest, crypto_digest_bytes(name)), check_encoding(L, 3));
}

/* hmac(name, key, s, [encoding]) -> string */
static int hmac(lua_State *L)
{
    char             digest[CRYPTO_DIGEST_BYTES_MAX];
    enum crypto_hash name = check_hash(L, 1);

    crypto_hmac(name, lstr_check(L, 2), lstr_check(L, 3), digest);
    return push_encoded(L, str_make(digest, crypto_digest_bytes(name)), check_encoding(L, 4));
}

/* equal(a, b) -> boolean, in a time that tells nothing */
static int equal(lua_State *L)
{
    lua_pushboolean(L, crypto_equal(lstr_check(L, 1), lstr_check(L, 2)));
    return 1;
}

/* --- signed cookies ------------------------------------------------------------------------------- */

static void push_signature(lua_State *L, struct str key, struct str value)
{
    char digest[CRYPTO_DIGEST_BYTES_MAX];

    crypto_hmac(CRYPTO_SHA256, key, value, digest);
    push_encoded(L, str_make(digest, crypto_digest_bytes(CRYPTO_SHA256)), ENCODING_BASE64_URL);
}

/* sign(key, value) -> string: HMAC-SHA256 as base64url */
static int sign(lua_State *L)
{
    push_signature(L, lstr_check(L, 1), lstr_check(L, 2));
    return 1;
}

/* verify(key, value, signature) -> boolean, in a time that tells nothing */
static int verify(lua_State *L)
{
    struct str given = lstr_check(L, 3);

    push_signature(L, lstr_check(L, 1), lstr_check(L, 2));
    lua_pushboolean(L, crypto_equal(lstr_check(L, -1), given));
    return 1;
}

/* --- what nobody can guess ------------------------------------------------------------------------- */

/* random(n, [encoding = "raw"]) -> string of n bytes */
static int random_bytes(lua_State *L)
{
    lua_Integer   n        = luaL_checkinteger(L, 1);
    enum encoding encoding = lua_isnoneornil(L, 2) ? ENCODING_RAW : check_encoding(L, 2);
    char         *bytes;

    luaL_argcheck(L, n >= 1 && n <= RANDOM_BYTES_MAX, 1, "from 1 to 65536 bytes");
    bytes = lua_newuserdata(L, (size_t)n);
    rand_bytes(bytes, (size_t)n);
    push_encoded(L, str_make(bytes, (size_t)n), encoding);
    explicit_bzero(bytes, (size_t)n);
    return 1;
}

/* uuid() -> string */
static int uuid(lua_State *L)
{
    struct uuid_source *source = lua_touserdata(L, lua_upvalueindex(1));
    char                text[UUID_LEN];

    uuid_write(source, clock_wall_ms(), text);
    lua_pushlstring(L, text, UUID_LEN);
    return 1;
}

/* --- sealed texts ---------------------------------------------------------------------------------- */

static struct str check_secret(lua_State *L, int index)
{
    struct str secret = lstr_check(L, index);

    luaL_argcheck(L, secret.len >= CRYPTO_SECRET_BYTES_MIN, index, "at least 32 bytes");
    return secret;
}

/* seal(secret, s, [aad]) -> string: base64url */
static int seal(lua_State *L)
{
    struct str secret = check_secret(L, 1);
    struct str text   = lstr_check(L, 2);
    struct str aad    = lstr_opt(L, 3);
    size_t     len    = text.len + CRYPTO_SEAL_BYTES;
    char      *sealed = lua_newuserdata(L, len);

    if (crypto_seal(secret, text, aad, sealed) != 0)
        return luaL_error(L, "not enough memory");
    return push_encoded(L, str_make(sealed, len), ENCODING_BASE64_URL);
}

/* unseal(secret, sealed, [aad]) -> string | nil: forged */
static int unseal(lua_State *L)
{
    struct str secret = check_secret(L, 1);
    struct str text   = lstr_check(L, 2);
    struct str aad    = lstr_opt(L, 3);
    char      *sealed = lua_newuserdata(L, codec_base64_bytes(text));
    char      *opened;
    size_t     len;

    if (!codec_base64_decode(text, CODEC_BASE64_URL, sealed, &len) || len < CRYPTO_SEAL_BYTES)
        return 0;
    opened = lua_newuserdata(L, len);
    if (crypto_unseal(secret, str_make(sealed, len), aad, opened) != 0)
        return 0;
    lua_pushlstring(L, opened, len - CRYPTO_SEAL_BYTES);
    explicit_bzero(opened, len);
    return 1;
}

int lcrypto_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "sign", sign },           { "verify", verify }, { "hash", hash }, { "hmac", hmac },
        { "random", random_bytes }, { "equal", equal },   { "seal", seal }, { "unseal", unseal },
        { "encode", encode },       { "decode", decode }, { NULL, NULL },
    };

    lua_createtable(L, 0, 11);
    luaL_register(L, NULL, FUNCTIONS);
    memset(lua_newuserdata(L, sizeof(struct uuid_source)), 0, sizeof(struct uuid_source));
    lua_pushcclosure(L, uuid, 1);
    lua_setfield(L, -2, "uuid");
    return 1;
}
