#include "bind/lfolder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lpath.h"
#include "bind/sources.h"

enum {
    NAMES_BYTES_MAX = 1 << 20, /* more is no folder that a person filled */
    DEPTH_MAX       = 16,
    PATH_BYTES      = 1024, /* of a file below the folder */
};

/* Lua is not touched while folders are open: its errors jump. */
struct walk {
    struct buf  names; /* each ends with a NUL */
    char        path[PATH_BYTES];
    struct stat above[DEPTH_MAX + 1]; /* the folders on the way */
    struct err *err;
};

static int walk_into(struct walk *walk, int parent, const char *name, size_t path_len,
                     unsigned depth);

static int add_name(struct walk *walk, size_t len)
{
    buf_add(&walk->names, walk->path, len + 1);
    if (walk->names.failed)
        return err_set(walk->err, ERR_TOO_LARGE, "the names of its files take over a megabyte");
    return 0;
}

/* A link to a folder that it lies in would be walked for ever. */
static bool leads_back(const struct walk *walk, const struct stat *st, unsigned depth)
{
    for (unsigned i = 0; i <= depth; i++)
        if (walk->above[i].st_ino == st->st_ino && walk->above[i].st_dev == st->st_dev)
            return true;
    return false;
}

/* Adds the file, or what is in the folder, that ENTRY of FOLDER names. */
static int visit(struct walk *walk, int folder, const char *entry, size_t path_len, unsigned depth)
{
    size_t      room = PATH_BYTES - path_len;
    struct stat st;
    int         len;

    len = snprintf(walk->path + path_len, room, "%s%s", path_len ? "/" : "", entry);
    if ((size_t)len >= room)
        return err_set(walk->err, ERR_TOO_LARGE, "%s: the path is too long", entry);
    if (fstatat(folder, entry, &st, 0) != 0)
        return 0; /* gone since it was listed, or a link to nowhere */
    if (S_ISDIR(st.st_mode) && leads_back(walk, &st, depth))
        return 0;
    if (S_ISDIR(st.st_mode))
        return walk_into(walk, folder, entry, path_len + (size_t)len, depth + 1);
    return S_ISREG(st.st_mode) ? add_name(walk, path_len + (size_t)len) : 0;
}

static int walk_into(struct walk *walk, int parent, const char *name, size_t path_len,
                     unsigned depth)
{
    int            fd, rc = 0;
    DIR           *folder;
    struct dirent *entry;

    if (depth > DEPTH_MAX)
        return err_set(walk->err, ERR_TOO_LARGE, "%s: folders lie too deep", walk->path);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(walk->err, "%s", name);
    folder = fstat(fd, &walk->above[depth]) == 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        rc = err_set_errno(walk->err, "%s", name);
        close(fd);
        return rc;
    }
    while (rc == 0 && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            rc = visit(walk, dirfd(folder), entry->d_name, path_len, depth);
    closedir(folder);
    return rc;
}

/* (lightuserdata of a struct buf) -> array; protected, for the buffer is not Lua's. */
static int push_names(lua_State *L)
{
    const struct buf *names = lua_touserdata(L, 1);
    int               count = 0;

    lua_newtable(L);
    for (size_t at = 0; at < names->len; at += strlen(names->at + at) + 1) {
        lua_pushstring(L, names->at + at);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

/* What is below PATH, but for links to WITHIN; NULL: there is no such folder. */
static int walk_below(struct walk *walk, const char *path, const char *within)
{
    struct stat st;

    if (!within)
        return walk_into(walk, AT_FDCWD, path, 0, 0);
    if (stat(within, &walk->above[0]) != 0)
        return err_set_errno(walk->err, "%s", within);
    if (stat(path, &st) == 0 && leads_back(walk, &st, 0))
        return 0;
    return walk_into(walk, AT_FDCWD, path, 0, 1);
}

/* files(path, [within]) -> names | nil, err: the files below PATH, relative to it, in no order. Hidden
 * ones are left out; links are followed, but not back to where one came from, nor to the folder
 * WITHIN, in which PATH lies. Blocks: for what is read while an app loads. */
static int files(lua_State *L)
{
    struct err  err;
    const char *path   = luaL_checkstring(L, 1);
    const char *within = luaL_optstring(L, 2, NULL);
    struct walk walk   = { .err = &err };
    int         rc;

    lua_settop(L, 2);
    lua_pushcfunction(L, push_names);
    lua_pushlightuserdata(L, &walk.names);
    buf_init(&walk.names, NAMES_BYTES_MAX);
    rc = walk_below(&walk, path, within);
    if (rc != 0) {
        buf_fini(&walk.names);
        return lerror_nil_err(L, rc == ERR_NOT_FOUND ? "not_found" : "fs", &err);
    }
    rc = lua_pcall(L, 1, 1, 0);
    buf_fini(&walk.names);
    return rc ? lua_error(L) : 1;
}

/* version(path) -> text | nil: changes when the file does; nil where there is none. */
static int version(lua_State *L)
{
    struct stat st;

    if (stat(luaL_checkstring(L, 1), &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    lua_pushfstring(L, "%d:%f:%f:%f", (int)st.st_dev, (double)st.st_ino, (double)st.st_size,
                    (double)st.st_mtim.tv_sec * 1e3 + (double)st.st_mtim.tv_nsec / 1e6);
    return 1;
}

/* is_private(path): whether it is a folder, and no link, of this user's that is closed to others. */
static int is_private(lua_State *L)
{
    struct stat st;

    lua_pushboolean(L, lstat(luaL_checkstring(L, 1), &st) == 0 && S_ISDIR(st.st_mode) &&
                           st.st_uid == geteuid() && (st.st_mode & 077) == 0);
    return 1;
}

/* watch(path): an edit of the file or folder loads the app anew */
static int watch(lua_State *L)
{
    struct lpath path;
    const char  *why = lpath_read(L, 1, &path);

    if (why)
        return lerror_misuse(L, "srv.watch: %s", why);
    if (!sources_add(env_of(L)->sources, path.at))
        return lerror_misuse(L, "srv.watch: no more than %d paths are watched, name a folder",
                             SOURCES_MAX);
    return 0;
}

int lfolder_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "files", files },     { "is_private", is_private },
        { "version", version }, { "watch", watch },
        { NULL, NULL },
    };

    lua_createtable(L, 0, 4);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
