#include "http/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "http/message.h"

struct files_folder {
    char path[PATH_MAX];
};

/* Neither waits for a pipe's writer nor takes a terminal. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int open_root(const struct files_folder *folder)
{
    return open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int files_open(struct files_folder **out, const char *path, struct err *err)
{
    size_t               len = strlen(path);
    struct files_folder *folder;
    int                  fd;

    if (len >= PATH_MAX)
        return err_set(err, ERR_INVALID, "the path of a folder is too long");
    folder = malloc(sizeof(*folder));
    if (!folder)
        return err_set(err, ERR_MEMORY, "%s: no memory", path);
    memcpy(folder->path, path, len + 1);
    fd = open_root(folder);
    if (fd < 0) {
        free(folder);
        return err_set_errno(err, "%s", path);
    }
    close(fd);
    *out = folder;
    return 0;
}

void files_close(struct files_folder *folder)
{
    free(folder);
}

/* --- paths ------------------------------------------------------------------------------------- */

/* ".well-known" is public by its very definition (RFC 8615). */
static bool is_hidden(struct str segment, bool is_first)
{
    return segment.len && segment.at[0] == '.' &&
           !(is_first && str_is(segment, STR(".well-known")));
}

/* "." and ".." are refused here too, though the kernel would hold them beneath the folder: one
 * file has one path. So are empty segments, and backslashes, which mean a slash to somebody. */
static enum files_outcome check_path(struct str path, bool shows_dotfiles)
{
    struct str rest     = path, segment;
    bool       is_first = true;

    if (str_find(path, '\0') < path.len)
        return FILES_BAD_PATH;
    if (path.len >= PATH_MAX || str_find(path, '\\') < path.len)
        return FILES_MISSING;
    while (rest.len) {
        size_t end = str_find(rest, '/');

        segment = str_make(rest.at, end);
        if (!segment.len || str_is(segment, STR(".")) || str_is(segment, STR("..")))
            return FILES_MISSING;
        if (!shows_dotfiles && is_hidden(segment, is_first))
            return FILES_MISSING;
        rest     = end < rest.len ? str_from(rest, end + 1) : STR_NONE;
        is_first = false;
    }
    return FILES_FOUND;
}

/* --- opening --------------------------------------------------------------------------------------- */

/* Without openat2() (an old kernel, a filter of system calls): segment by segment, and no symbolic
 * link at all. PATH is cut up on the way. */
static int open_by_steps(int root_fd, char *path, int last_flags)
{
    int fd = root_fd;

    for (char *segment = path; segment;) {
        char *slash = strchr(segment, '/');
        int   flags = slash ? O_PATH | O_DIRECTORY | O_CLOEXEC : last_flags;
        int   next;

        if (slash)
            *slash = '\0';
        next = openat(fd, segment, flags | O_NOFOLLOW);
        if (fd != root_fd)
            close(fd);
        if (next < 0)
            return -1;
        fd      = next;
        segment = slash ? slash + 1 : NULL;
    }
    return fd;
}

/* Whether the kernel has refused openat2() as such, once for all. */
static atomic_bool openat2_is_missing;

/* EAGAIN: the tree was changed while the kernel walked it. */
enum { RACES_MAX = 8 };

static int open_beneath(int root_fd, char *path, int flags)
{
    struct open_how how = { .flags   = (unsigned)flags,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

    if (!atomic_load_explicit(&openat2_is_missing, memory_order_relaxed)) {
        long fd;

        for (int tries = 0; tries < RACES_MAX; tries++) {
            fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
            if (fd >= 0 || errno != EAGAIN)
                break;
        }
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return (int)fd;
        atomic_store_explicit(&openat2_is_missing, true, memory_order_relaxed);
    }
    return open_by_steps(root_fd, path, flags);
}

static enum files_outcome outcome_of_errno(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? FILES_EXHAUSTED : FILES_MISSING;
}

/* PATH ends in NUL and may be changed. */
static enum files_outcome open_file(int root_fd, char *path, struct files_file *out)
{
    struct stat stat = { 0 };
    int         fd   = open_beneath(root_fd, path, OPEN_FLAGS);

    if (fd < 0)
        return outcome_of_errno();
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
        close(fd); /* a folder, a pipe, a device */
        return S_ISDIR(stat.st_mode) ? FILES_IS_FOLDER : FILES_MISSING;
    }
    out->fd       = fd;
    out->size     = (uint64_t)stat.st_size;
    out->inode    = (uint64_t)stat.st_ino;
    out->mtime_s  = stat.st_mtim.tv_sec;
    out->mtime_ns = (uint32_t)stat.st_mtim.tv_nsec;
    out->coding   = CODINGS_IDENTITY;
    return FILES_FOUND;
}

/* --- compressed sisters -------------------------------------------------------------------------------- */

/* The smallest first, as a rule. */
static const enum codings_id sisters[] = { CODINGS_BR, CODINGS_ZSTD, CODINGS_GZIP };

_Static_assert(ARRAY_LEN(sisters) == FILES_CODINGS_MAX, "room for all sisters");

static const char *suffix_of(enum codings_id coding)
{
    switch (coding) {
    case CODINGS_BR: return ".br";
    case CODINGS_ZSTD: return ".zst";
    case CODINGS_GZIP: return ".gz";
    case CODINGS_IDENTITY:
    case CODINGS_DEFLATE:
    case CODINGS_COUNT: break;
    }
    return "";
}

static bool is_older(const struct files_file *a, const struct files_file *b)
{
    return a->mtime_s < b->mtime_s || (a->mtime_s == b->mtime_s && a->mtime_ns < b->mtime_ns);
}

static void prefer_sister(int root_fd, const char *path, size_t len,
                          const struct files_codings *codings, struct files_file *file)
{
    char name[PATH_MAX + sizeof(".zst")];

    for (unsigned i = 0; i < codings->count; i++) {
        const char       *suffix = suffix_of(codings->of[i]);
        struct files_file found;

        memcpy(name, path, len);
        memcpy(name + len, suffix, strlen(suffix) + 1);
        if (open_file(root_fd, name, &found) != FILES_FOUND)
            continue;
        if (is_older(&found, file)) {
            close(found.fd);
            continue;
        }
        close(file->fd);
        found.name   = file->name;
        found.coding = codings->of[i];
        *file        = found;
        return;
    }
}

/* --- finding ---------------------------------------------------------------------------------------------- */

/* NAME: the path beneath the folder, its index included. */
static enum files_outcome find_beneath(int root_fd, const char *name, size_t len,
                                       const struct files_rules *rules, struct files_file *out)
{
    char               opened[PATH_MAX];
    enum files_outcome outcome;

    memcpy(opened, name, len + 1);
    outcome = open_file(root_fd, opened, out);
    if (outcome == FILES_FOUND)
        prefer_sister(root_fd, name, len, &rules->codings, out);
    return outcome;
}

enum files_outcome files_find(const struct files_folder *folder, struct str path,
                              const struct files_rules *rules, struct files_file *out)
{
    char               name[PATH_MAX];
    size_t             len     = path.len;
    bool               is_root = !len || path.at[len - 1] == '/';
    const char        *index   = is_root && rules->index ? rules->index : "";
    enum files_outcome outcome = check_path(path, rules->dotfiles);
    int                root_fd;

    if (outcome != FILES_FOUND)
        return outcome;
    if (is_root && (!rules->index || len + strlen(rules->index) >= sizeof(name)))
        return FILES_MISSING;
    memcpy(name, len ? path.at : "", len);
    memcpy(name + len, index, strlen(index) + 1);
    out->name = is_root ? str_of(rules->index) : path;
    root_fd   = open_root(folder);
    if (root_fd < 0)
        return outcome_of_errno();
    outcome = find_beneath(root_fd, name, len + strlen(index), rules, out);
    close(root_fd);
    return is_root && outcome == FILES_IS_FOLDER ? FILES_MISSING : outcome;
}

/* --- folders ------------------------------------------------------------------------------------------------ */

enum files_outcome files_open_folder(const struct files_folder *folder, struct str path,
                                     bool shows_dotfiles, struct files_opened *out)
{
    enum files_outcome outcome = check_path(path, shows_dotfiles);
    char               name[PATH_MAX];

    if (outcome != FILES_FOUND)
        return outcome;
    if (path.len && path.at[path.len - 1] == '/')
        path.len--;
    if (!path.len)
        path = STR(".");
    memcpy(name, path.at, path.len);
    name[path.len] = '\0';
    out->root_fd   = open_root(folder);
    if (out->root_fd < 0)
        return outcome_of_errno();
    out->fd = open_beneath(out->root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0) {
        outcome = outcome_of_errno();
        close(out->root_fd);
    }
    return outcome;
}

bool files_stat_beneath(const struct files_opened *opened, char *path, struct stat *out)
{
    int  fd      = open_beneath(opened->root_fd, path, O_PATH | O_CLOEXEC);
    bool is_read = fd >= 0 && fstat(fd, out) == 0;

    if (fd >= 0)
        close(fd);
    return is_read;
}

/* --- what the client accepts ---------------------------------------------------------------------------------- */

struct files_codings files_codings(const struct request *request)
{
    struct files_codings codings;

    codings.count = codings_order(request, sisters, ARRAY_LEN(sisters), codings.of);
    return codings;
}
