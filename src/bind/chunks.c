#include "bind/chunks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

/* Which version of a file: an edit changes at least one of these. */
struct version {
    dev_t           device;
    ino_t           inode;
    off_t           bytes;
    struct timespec changed;
};

/* Immutable once it is in the map, but for `users`. */
struct chunk {
    struct version version;
    unsigned       users; /* the map, and each load that reads it now; under the lock */
    struct buf     bytecode;
    char           path[];
};

struct chunks {
    pthread_mutex_t lock; /* held for a look-up or a replacement, never while Lua runs */
    struct map      by_path;
};

int chunks_open(struct chunks **out, struct err *err)
{
    struct chunks *chunks = calloc(1, sizeof(*chunks));

    if (!chunks)
        return err_set(err, ERR_MEMORY, "no memory for compiled files");
    pthread_mutex_init(&chunks->lock, NULL);
    map_init(&chunks->by_path);
    *out = chunks;
    return 0;
}

/* Under the lock, or when nobody else is there. */
static void drop_use(struct chunk *chunk)
{
    if (--chunk->users)
        return;
    buf_fini(&chunk->bytecode);
    free(chunk);
}

void chunks_close(struct chunks *chunks)
{
    struct chunk *chunk;
    size_t        cursor = 0;

    if (!chunks)
        return;
    while ((chunk = map_next(&chunks->by_path, &cursor, NULL)))
        drop_use(chunk);
    map_fini(&chunks->by_path);
    pthread_mutex_destroy(&chunks->lock);
    free(chunks);
}

/* --- files ----------------------------------------------------------------------------------------- */

/* Whole, with the version that was read: by the open file, for the path may change meanwhile. */
static int read_file(const char *path, struct buf *text, struct version *version)
{
    FILE       *file = fopen(path, "re");
    struct stat about;
    int         error;

    if (!file)
        return errno;
    errno = 0;
    if (fstat(fileno(file), &about) == 0)
        *version = (struct version){ about.st_dev, about.st_ino, about.st_size, about.st_mtim };
    while (!feof(file) && !ferror(file)) {
        char *to = buf_reserve(text, 4096);

        if (!to)
            break;
        text->len += fread(to, 1, 4096, file);
    }
    error = text->failed ? EFBIG : ferror(file) ? (errno ? errno : EIO) : 0;
    fclose(file);
    return error;
}

static bool is_version(const struct version *a, const struct stat *b)
{
    return a->device == b->st_dev && a->inode == b->st_ino && a->bytes == b->st_size &&
           a->changed.tv_sec == b->st_mtim.tv_sec && a->changed.tv_nsec == b->st_mtim.tv_nsec;
}

/* --- what is kept ------------------------------------------------------------------------------------ */

static struct chunk *find_current(struct chunks *chunks, const char *path)
{
    struct chunk *chunk;
    struct stat   now;

    if (stat(path, &now) != 0)
        return NULL;
    pthread_mutex_lock(&chunks->lock);
    chunk = map_get(&chunks->by_path, str_of(path));
    if (chunk && is_version(&chunk->version, &now))
        chunk->users++;
    else
        chunk = NULL;
    pthread_mutex_unlock(&chunks->lock);
    return chunk;
}

static void let_go(struct chunks *chunks, struct chunk *chunk)
{
    pthread_mutex_lock(&chunks->lock);
    drop_use(chunk);
    pthread_mutex_unlock(&chunks->lock);
}

static int write_bytecode(lua_State *L, const void *bytes, size_t len, void *arg)
{
    struct buf *to = arg;

    buf_add(to, bytes, len);
    return to->failed;
}

/* In the place of the version before; the key is the new chunk's own path. */
static void put(struct chunks *chunks, struct chunk *chunk)
{
    struct str    path = str_of(chunk->path);
    struct chunk *old;

    pthread_mutex_lock(&chunks->lock);
    old = map_remove(&chunks->by_path, path);
    if (chunks->by_path.count >= CHUNKS_KEPT_MAX || !map_put(&chunks->by_path, path, chunk, NULL))
        drop_use(chunk);
    if (old)
        drop_use(old);
    pthread_mutex_unlock(&chunks->lock);
}

/* Keeps the function on top of L. Without memory it is compiled again the next time. */
static void keep(lua_State *L, struct chunks *chunks, const char *path,
                 const struct version *version)
{
    size_t        bytes = strlen(path) + 1;
    struct chunk *chunk = malloc(sizeof(*chunk) + bytes);

    if (!chunk)
        return;
    *chunk = (struct chunk){ .version = *version, .users = 1 };
    memcpy(chunk->path, path, bytes);
    buf_init(&chunk->bytecode, CHUNKS_FILE_BYTES_MAX);
    if (lua_dump(L, write_bytecode, &chunk->bytecode) == 0)
        put(chunks, chunk);
    else
        drop_use(chunk);
}

/* --- loading ----------------------------------------------------------------------------------------- */

static bool compile(lua_State *L, struct chunks *chunks, const char *path, const char *name)
{
    struct version version = { 0 };
    struct buf     text;
    int            error, status = 0;

    buf_init(&text, CHUNKS_FILE_BYTES_MAX);
    error = read_file(path, &text, &version);
    if (error == 0)
        status = luaL_loadbufferx(L, text.at ? text.at : "", text.len, name, "t");
    buf_fini(&text);
    if (error) {
        lua_pushfstring(L, "cannot read %s: %s", path, strerror(error));
        return false;
    }
    if (status == 0 && chunks)
        keep(L, chunks, path, &version);
    return status == 0;
}

bool chunks_load(lua_State *L, struct chunks *chunks, const char *path, const char *name)
{
    struct chunk *chunk = chunks ? find_current(chunks, path) : NULL;
    int           status;

    if (!chunk)
        return compile(L, chunks, path, name);
    status = luaL_loadbufferx(L, chunk->bytecode.at, chunk->bytecode.len, name, "b");
    let_go(chunks, chunk);
    return status == 0;
}

bool chunks_lie_in(struct chunks *chunks, const char *folder)
{
    size_t     len = strlen(folder), cursor = 0;
    bool       found = false;
    struct str path;

    pthread_mutex_lock(&chunks->lock);
    while (!found && map_next(&chunks->by_path, &cursor, &path))
        found = path.len > len && path.at[len] == '/' && memcmp(path.at, folder, len) == 0;
    pthread_mutex_unlock(&chunks->lock);
    return found;
}
