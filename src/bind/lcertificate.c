#include "bind/lcertificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/certificate.h"
#include "base/compiler.h"
#include "base/err.h"
#include "bind/lerror.h"

/* Three certificates are too large for the stack of a command's thread, and raising must not leak them:
 * they are userdata. */
struct making {
    struct certificate out, issuer;
};

static struct making *new_making(lua_State *L)
{
    struct making *making = lua_newuserdata(L, sizeof(*making));

    memset(making, 0, sizeof(*making));
    return making;
}

static void wipe(struct making *making)
{
    explicit_bzero(making, sizeof(*making));
}

static int push_made(lua_State *L, struct making *making, int rc, const struct err *err)
{
    if (rc == 0) {
        lua_pushstring(L, making->out.cert);
        lua_pushstring(L, making->out.key);
    }
    wipe(making);
    return rc == 0 ? 2 : lerror_nil_err(L, NULL, err);
}

static unsigned check_days(lua_State *L, int at)
{
    lua_Integer days = luaL_checkinteger(L, at);

    luaL_argcheck(L, days >= 1 && days <= CERTIFICATE_DAYS_MAX, at, "days");
    return (unsigned)days;
}

/* authority(subject, days) -> certificate, key | nil, err */
static int authority(lua_State *L)
{
    struct certificate_spec spec   = { .subject      = luaL_checkstring(L, 1),
                                       .days         = check_days(L, 2),
                                       .is_authority = true };
    struct making          *making = new_making(L);
    struct err              err    = { 0 };

    return push_made(L, making, certificate_make(&making->out, &spec, NULL, &err), &err);
}

static void copy_pem(lua_State *L, int at, char to[CERTIFICATE_PEM_BYTES_MAX])
{
    size_t      len;
    const char *pem = luaL_checklstring(L, at, &len);

    luaL_argcheck(L, len < CERTIFICATE_PEM_BYTES_MAX && strlen(pem) == len, at, "PEM");
    memcpy(to, pem, len + 1);
}

/* server(subject, days, names, ca_certificate, ca_key) -> certificate, key | nil, err */
static int server(lua_State *L)
{
    const char             *names[CERTIFICATE_NAMES_MAX];
    struct certificate_spec spec = { .subject    = luaL_checkstring(L, 1),
                                     .days       = check_days(L, 2),
                                     .names      = names,
                                     .name_count = (unsigned)lua_objlen(L, 3) };
    struct making          *making;
    struct err              err = { 0 };

    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_argcheck(L, spec.name_count <= CERTIFICATE_NAMES_MAX, 3, "too many names");
    luaL_checkstack(L, CERTIFICATE_NAMES_MAX + 8, "names");
    for (unsigned i = 0; i < spec.name_count; i++) {
        lua_rawgeti(L, 3, (int)i + 1);
        names[i] = luaL_checkstring(L, -1);
    }
    making = new_making(L);
    copy_pem(L, 4, making->issuer.cert);
    copy_pem(L, 5, making->issuer.key);
    return push_made(L, making, certificate_make(&making->out, &spec, &making->issuer, &err), &err);
}

/* is_name(text) -> boolean */
static int is_name(lua_State *L)
{
    size_t      len;
    const char *name = luaL_checklstring(L, 1, &len);

    lua_pushboolean(L, strlen(name) == len && certificate_is_name(name));
    return 1;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static int push_result(lua_State *L, const struct err *err)
{
    if (*err->text)
        return lerror_nil_err(L, "fs", err);
    lua_pushboolean(L, true);
    return 1;
}

static bool make_private_folder(const char *path)
{
    struct stat there;
    int         number;

    if (mkdir(path, 0700) == 0)
        return chmod(path, 0700) == 0;
    number = errno;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return true;
    errno = number;
    return false;
}

/* folder(path) -> true | nil, err: a new one is its owner's alone, one that is there stays as it is.
 * Modes here are set once more, since a umask may take more from them than it should. */
static int folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct err  err  = { 0 };

    if (!make_private_folder(path))
        err_set_errno(&err, "cannot make the folder %s", path);
    return push_result(L, &err);
}

/* save(path, text, is_private) -> true | nil, err: a new file, which nobody else reads before it has
 * its mode. What was there under its name is removed. */
static int save(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    size_t      len;
    const char *text = luaL_checklstring(L, 2, &len);
    mode_t      mode = lua_toboolean(L, 3) ? 0600 : 0644;
    struct err  err  = { 0 };
    int         fd;
    bool        is_whole;

    unlink(path);
    fd       = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    is_whole = fd >= 0 && fchmod(fd, mode) == 0 && write_all(fd, text, len);
    if (!is_whole)
        err_set_errno(&err, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    return push_result(L, &err);
}

int lcertificate_open(lua_State *L)
{
    static const luaL_Reg functions[] = { { "authority", authority }, { "server", server },
                                          { "is_name", is_name },     { "folder", folder },
                                          { "save", save },           { NULL, NULL } };

    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}
