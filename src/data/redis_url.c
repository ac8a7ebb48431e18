#include "data/redis_url.h"

#include <stdio.h>
#include <string.h>

#include "base/codec.h"
#include "base/err.h"

enum { BASE64_BYTES = 44 /* of a pin */ };

static int refuse(struct err *err, const char *why)
{
    return err_set(
        err, ERR_INVALID,
        "%s; a URL of Redis is redis://[[user:]password@]host[:port][/database], the same "
        "with rediss: for TLS, or unix:/path",
        why);
}

/* Decodes TEXT into a field of ROOM bytes, which holds zeroes. */
static bool put(char *to, size_t room, struct str text)
{
    size_t len = 0;

    if (text.len >= room || !codec_percent_decode(text, to, &len))
        return false;
    memset(to + len, 0, room - len);
    return memchr(to, '\0', len) == NULL;
}

/* Cuts what stands before the last BYTE off *REST. */
static bool cut_before(struct str *rest, char byte, struct str *before)
{
    size_t at = rest->len;

    while (at > 0 && rest->at[at - 1] != byte)
        at--;
    if (at == 0)
        return false;
    *before = str_make(rest->at, at - 1);
    *rest   = str_from(*rest, at);
    return true;
}

static bool read_userinfo(struct redis_target *out, struct str userinfo)
{
    size_t     colon    = str_find(userinfo, ':');
    bool       has_user = colon < userinfo.len;
    struct str user     = has_user ? str_make(userinfo.at, colon) : STR_NONE;
    struct str password = has_user ? str_from(userinfo, colon + 1) : userinfo;

    return put(out->user, sizeof(out->user), user) &&
           put(out->password, sizeof(out->password), password) &&
           (out->password[0] || !out->user[0]);
}

static bool read_database(struct redis_target *out, struct str text)
{
    uint64_t number;

    if (!str_to_u64(text, REDIS_DATABASE_MAX, &number))
        return false;
    out->database = (uint32_t)number;
    return true;
}

static bool read_port(struct redis_target *out, struct str text)
{
    uint64_t number;

    if (!str_to_u64(text, UINT16_MAX, &number) || number == 0)
        return false;
    out->port = (uint16_t)number;
    return true;
}

/* "host", "host:6379", "[::1]:6379" */
static bool read_host(struct redis_target *out, struct str text)
{
    size_t     end  = str_find(text, text.len && text.at[0] == '[' ? ']' : ':');
    struct str host = str_make(text.at, end);
    struct str rest = str_from(text, end);

    if (text.len && text.at[0] == '[') {
        if (end == text.len)
            return false;
        host = str_make(text.at + 1, end - 1);
        rest = str_from(text, end + 1);
    }
    if (host.len == 0 || !put(out->host, sizeof(out->host), host))
        return false;
    if (rest.len == 0)
        return true;
    return rest.at[0] == ':' && read_port(out, str_from(rest, 1));
}

/* --- by TLS -------------------------------------------------------------------------------------------- */

/* Whose folder would a relative one begin in? */
static bool put_path(char to[REDIS_FILE_BYTES], struct str text)
{
    return put(to, REDIS_FILE_BYTES, text) && to[0] == '/';
}

/* "sha256/" and the hash of a public key, also with two slashes as curl has it. */
static bool put_pin(struct redis_target *out, struct str text)
{
    char       given[64] = "";
    uint8_t    pin[64];
    size_t     len = 0;
    struct str hash;

    if (out->pin_count == REDIS_PINS_MAX || !put(given, sizeof(given), text))
        return false;
    hash = str_of(given);
    if (!str_starts_with(hash, STR("sha256/")))
        return false;
    hash = str_from(hash, 7);
    if (hash.len == BASE64_BYTES + 1 && hash.at[0] == '/')
        hash = str_from(hash, 1);
    if (hash.len != BASE64_BYTES || !codec_base64_decode(hash, CODEC_BASE64, pin, &len) ||
        len != TLS_PIN_BYTES)
        return false;
    memcpy(out->pins[out->pin_count++], pin, TLS_PIN_BYTES);
    return true;
}

static bool read_parameter(struct redis_target *out, struct str name, struct str value)
{
    if (str_is(name, STR("ca")))
        return put_path(out->files.ca, value);
    if (str_is(name, STR("cert")))
        return put_path(out->files.cert, value);
    if (str_is(name, STR("key")))
        return put_path(out->files.key, value);
    if (str_is(name, STR("server_name")))
        return value.len && put(out->server_name, sizeof(out->server_name), value);
    if (str_is(name, STR("pin")))
        return put_pin(out, value);
    out->trusts_all = str_is(value, STR("false"));
    return str_is(name, STR("verify")) && (out->trusts_all || str_is(value, STR("true")));
}

/* What follows the "?". */
static int read_parameters(struct redis_target *out, struct str rest, struct err *err)
{
    while (rest.len) {
        size_t     end   = str_find(rest, '&');
        struct str pair  = str_make(rest.at, end);
        size_t     equal = str_find(pair, '=');
        struct str value = equal < pair.len ? str_from(pair, equal + 1) : STR_NONE;

        if (!read_parameter(out, str_make(pair.at, equal), value))
            return refuse(err,
                          "behind the ? of rediss:// can stand ca, cert and key (paths that begin "
                          "with /), verify=false, server_name and pin=sha256/HASH");
        rest = end < rest.len ? str_from(rest, end + 1) : STR_NONE;
    }
    if (out->files.key[0] && !out->files.cert[0])
        return refuse(err, "a key belongs to a cert");
    return 0;
}

/* --- the schemes --------------------------------------------------------------------------------------- */

/* What follows "redis://". */
static int read_tcp(struct redis_target *out, struct str rest, struct err *err)
{
    size_t     slash     = str_find(rest, '/');
    struct str authority = str_make(rest.at, slash);
    struct str database  = slash < rest.len ? str_from(rest, slash + 1) : STR_NONE;
    struct str userinfo;

    if (str_find(rest, '?') < rest.len)
        return refuse(err, "redis:// takes no parameters behind a ?");
    if (cut_before(&authority, '@', &userinfo) && !read_userinfo(out, userinfo))
        return refuse(err, "user or password cannot be read");
    if (!read_host(out, authority))
        return refuse(err, "host or port cannot be read");
    if (database.len && !read_database(out, database))
        return refuse(err, "the database must be a number");
    return 0;
}

/* What follows "rediss://". */
static int read_tls(struct redis_target *out, struct str rest, struct err *err)
{
    size_t query = str_find(rest, '?');
    int    rc    = read_tcp(out, str_make(rest.at, query), err);

    out->has_tls = true;
    return rc == 0 && query < rest.len ? read_parameters(out, str_from(rest, query + 1), err) : rc;
}

/* What follows the colon of "unix:" or "redis+unix:". */
static int read_unix(struct redis_target *out, struct str rest, struct err *err)
{
    size_t     query = str_find(rest, '?');
    struct str path  = str_make(rest.at, query);

    if (str_starts_with(path, STR("//"))) {
        struct str authority = str_from(path, 2);
        struct str userinfo;

        authority.len = str_find(authority, '/');
        path          = str_from(path, 2 + authority.len);
        if (cut_before(&authority, '@', &userinfo) && !read_userinfo(out, userinfo))
            return refuse(err, "user or password cannot be read");
        if (authority.len)
            return refuse(err, "the path of the socket must begin with /");
    }
    if (path.len == 0 || !put(out->path, sizeof(out->path), path))
        return refuse(err, "the path of the socket is missing or too long");
    if (query == rest.len)
        return 0;
    rest = str_from(rest, query + 1);
    if (!str_starts_with(rest, STR("db=")) || !read_database(out, str_from(rest, 3)))
        return refuse(err, "behind the ? only db=NUMBER can stand");
    return 0;
}

int redis_url_parse(struct redis_target *out, struct str url, struct err *err)
{
    memset(out, 0, sizeof(*out));
    out->port = REDIS_PORT;
    if (str_starts_with(url, STR("rediss://")))
        return read_tls(out, str_from(url, 9), err);
    if (str_starts_with(url, STR("redis://")))
        return read_tcp(out, str_from(url, 8), err);
    if (str_starts_with(url, STR("redis+unix:")))
        return read_unix(out, str_from(url, 11), err);
    if (str_starts_with(url, STR("unix:")))
        return read_unix(out, str_from(url, 5), err);
    return refuse(err, "the scheme is unknown");
}

const char *redis_target_place(const struct redis_target *target, char to[REDIS_PLACE_BYTES])
{
    bool is_v6 = strchr(target->host, ':') != NULL;

    if (target->path[0])
        snprintf(to, REDIS_PLACE_BYTES, "%s", target->path);
    else
        snprintf(to, REDIS_PLACE_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", target->host, target->port);
    return to;
}
