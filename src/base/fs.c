#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    STEP_BYTES = 1 << 20,   /* read or written between two looks at `stop` */
    READ_ROOM  = 16 * 1024, /* for files that do not know their size, as in /proc */
    DEPTH_MAX  = 128,       /* of folders that are removed; each holds a descriptor */
};

int fs_fail(struct err *err, const char *path)
{
    switch (errno) {
    case ENOTDIR: return err_set(err, ERR_NOT_FOUND, "%s: a part of the path is no folder", path);
    case EACCES:
    case EPERM:
    case EROFS: return err_set(err, ERR_DENIED, "%s: %s", path, strerror(errno));
    case ENOSPC:
    case EDQUOT: return err_set(err, ERR_NO_SPACE, "%s: %s", path, strerror(errno));
    case ENOTEMPTY: return err_set(err, ERR_NOT_EMPTY, "%s: the folder is not empty", path);
    case EXDEV:
        return err_set(err, ERR_SYSTEM, "%s: lies on another file system: copy, then remove", path);
    default: return err_set_errno(err, "%s", path);
    }
}

static bool is_stopped(const atomic_bool *stop)
{
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static int stopped(struct err *err, const char *path)
{
    return err_set(err, ERR_CANCELLED, "%s: not wanted any more", path);
}

/* --- looking ------------------------------------------------------------------------------------- */

static enum fs_kind kind_of(mode_t mode)
{
    if (S_ISREG(mode))
        return FS_FILE;
    return S_ISDIR(mode) ? FS_FOLDER : FS_OTHER;
}

int fs_stat(const char *path, struct fs_stat *out, struct err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return fs_fail(err, path);
    out->size  = (uint64_t)st.st_size;
    out->mtime = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
    out->mode  = st.st_mode & 07777;
    out->kind  = kind_of(st.st_mode);
    return 0;
}

struct fs_mark fs_mark(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct fs_mark){ 0 };
    return (struct fs_mark){
        .inode      = (uint64_t)st.st_ino,
        .size       = (uint64_t)st.st_size,
        .changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
    };
}

bool fs_mark_is_same(struct fs_mark a, struct fs_mark b)
{
    return a.inode == b.inode && a.size == b.size && a.changed_ns == b.changed_ns;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_names(const struct buf *names)
{
    size_t count = 0;

    for (size_t at = 0; at < names->len; at++)
        count += names->at[at] == 0;
    return count;
}

static int sort_into(struct buf *out, const struct buf *names)
{
    size_t       count = count_names(names), i = 0;
    const char **sorted = malloc((count + 1) * sizeof(*sorted));

    if (!sorted)
        return ERR_MEMORY;
    for (size_t at = 0; at < names->len; at += strlen(names->at + at) + 1)
        sorted[i++] = names->at + at;
    qsort(sorted, count, sizeof(*sorted), compare_names);
    for (i = 0; i < count; i++)
        buf_add(out, sorted[i], strlen(sorted[i]) + 1);
    free(sorted);
    return out->failed ? ERR_MEMORY : 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int read_names(DIR *folder, const char *path, struct buf *names, struct err *err)
{
    struct dirent *entry;

    while ((errno = 0, entry = readdir(folder)))
        if (!is_dots(entry->d_name))
            buf_add(names, entry->d_name, strlen(entry->d_name) + 1);
    if (errno)
        return fs_fail(err, path);
    if (names->failed)
        return err_set(err, ERR_TOO_LARGE, "%s: its names take over %d bytes", path,
                       FS_NAMES_BYTES_MAX);
    return 0;
}

int fs_list(const char *path, struct buf *out, struct err *err)
{
    DIR       *folder = opendir(path);
    struct buf names;
    int        rc;

    if (!folder)
        return fs_fail(err, path);
    buf_init(&names, FS_NAMES_BYTES_MAX);
    rc = read_names(folder, path, &names, err);
    closedir(folder);
    if (rc == 0 && sort_into(out, &names) != 0)
        rc = err_set(err, ERR_MEMORY, "%s: no memory for its names", path);
    buf_fini(&names);
    return rc;
}

/* --- reading ------------------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a pipe that nobody writes would wait. */
int fs_open(const char *path, int flags, int *fd, struct err *err)
{
    struct stat st = { 0 };

    *fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (*fd < 0)
        return fs_fail(err, path);
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    close(*fd);
    *fd = -1;
    return err_set(err, ERR_SYSTEM, "%s: is %s", path,
                   S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
}

static int too_large(struct err *err, const char *path, size_t limit)
{
    return err_set(err, ERR_TOO_LARGE, "%s: has more than %zu bytes", path, limit);
}

/* Bytes to ask for next: a byte beyond the limit tells that there is one. */
static size_t next_step(size_t left, size_t expected)
{
    size_t bytes = expected < READ_ROOM ? READ_ROOM : expected;

    if (bytes > STEP_BYTES)
        bytes = STEP_BYTES;
    return bytes <= left ? bytes : left + 1;
}

static int read_all(int fd, const char *path, size_t limit, size_t size, struct buf *to,
                    const atomic_bool *stop, struct err *err)
{
    size_t taken = 0;

    for (;;) {
        size_t  step = next_step(limit - taken, size > taken ? size - taken + 1 : 0);
        char   *room = buf_reserve(to, step);
        ssize_t n;

        if (!room)
            return err_set(err, ERR_MEMORY, "%s: no memory to read it", path);
        if (is_stopped(stop))
            return stopped(err, path);
        n = read(fd, room, step);
        if (n < 0)
            return fs_fail(err, path);
        if (n == 0)
            return 0;
        taken += (size_t)n;
        if (taken > limit)
            return too_large(err, path, limit);
        to->len += (size_t)n;
    }
}

int fs_read(const char *path, size_t limit, struct buf *to, const atomic_bool *stop,
            struct err *err)
{
    struct stat st;
    int         fd, rc = fs_open(path, O_RDONLY, &fd, err);

    if (rc != 0)
        return rc;
    if (fstat(fd, &st) != 0)
        rc = fs_fail(err, path);
    else if ((uint64_t)st.st_size > limit)
        rc = too_large(err, path, limit);
    else
        rc = read_all(fd, path, limit, (size_t)st.st_size, to, stop, err);
    close(fd);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------------- */

int fs_write_at(int fd, struct str bytes, int64_t offset, size_t *written, const atomic_bool *stop,
                const char *path, struct err *err)
{
    *written = 0;
    while (*written < bytes.len) {
        size_t  left = bytes.len - *written;
        ssize_t n;

        if (is_stopped(stop))
            return stopped(err, path);
        n = pwrite(fd, bytes.at + *written, left < STEP_BYTES ? left : STEP_BYTES,
                   offset + (int64_t)*written);
        if (n < 0)
            return fs_fail(err, path);
        *written += (size_t)n;
    }
    return 0;
}

int fs_append(const char *path, struct str bytes, const atomic_bool *stop, struct err *err)
{
    size_t written;
    int    fd, rc = fs_open(path, O_WRONLY | O_APPEND | O_CREAT, &fd, err);

    if (rc != 0)
        return rc;
    rc = fs_write_at(fd, bytes, 0, &written, stop, path, err);
    if (close(fd) != 0 && rc == 0)
        rc = fs_fail(err, path);
    return rc;
}

/* --- folders and names ----------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int make_one(const char *path, struct err *err)
{
    int number;

    if (mkdir(path, 0777) == 0)
        return 0;
    number = errno;
    if (is_folder(path))
        return 0;
    errno = number;
    return fs_fail(err, path);
}

int fs_mkdir(const char *path, struct err *err)
{
    char   part[PATH_MAX];
    size_t len = strlen(path);
    int    rc  = 0;

    if (len >= sizeof(part))
        return err_set(err, ERR_SYSTEM, "the path is too long");
    memcpy(part, path, len + 1);
    for (size_t i = 1; i < len && rc == 0; i++) {
        if (part[i] != '/')
            continue;
        part[i] = 0;
        rc      = make_one(part, err);
        part[i] = '/';
    }
    return rc == 0 ? make_one(path, err) : rc;
}

struct removal {
    const char        *path; /* for messages */
    const atomic_bool *stop;
    struct err        *err;
};

static int remove_tree(const struct removal *removal, int parent, const char *name, int depth);

static int remove_contents(const struct removal *removal, DIR *folder, int depth)
{
    struct dirent *entry;
    int            rc = 0;

    while (rc == 0 && (errno = 0, entry = readdir(folder)))
        if (!is_dots(entry->d_name))
            rc = remove_tree(removal, dirfd(folder), entry->d_name, depth + 1);
    return rc == 0 && errno ? fs_fail(removal->err, removal->path) : rc;
}

/* Another process may have been quicker with a name: that is what was wanted. */
static int remove_name(const struct removal *removal, int parent, const char *name, int flags)
{
    return unlinkat(parent, name, flags) == 0 || errno == ENOENT
               ? 0
               : fs_fail(removal->err, removal->path);
}

static int remove_tree(const struct removal *removal, int parent, const char *name, int depth)
{
    int  fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;
    DIR *folder;

    if (is_stopped(removal->stop)) {
        if (fd >= 0)
            close(fd);
        return stopped(removal->err, removal->path);
    }
    if (fd < 0) /* no folder; or a locked one, and then this fails as well */
        return remove_name(removal, parent, name, 0);
    folder = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
    if (!folder) {
        close(fd);
        return err_set(removal->err, ERR_SYSTEM, "%s: folders lie too deep", removal->path);
    }
    rc = remove_contents(removal, folder, depth);
    closedir(folder);
    return rc == 0 ? remove_name(removal, parent, name, AT_REMOVEDIR) : rc;
}

int fs_remove(const char *path, bool recursive, const atomic_bool *stop, struct err *err)
{
    struct removal removal = { path, stop, err };
    struct stat    st;

    if (lstat(path, &st) != 0)
        return fs_fail(err, path);
    if (recursive)
        return remove_tree(&removal, AT_FDCWD, path, 0);
    return remove(path) == 0 ? 0 : fs_fail(err, path);
}

int fs_rename(const char *from, const char *to, struct err *err)
{
    return rename(from, to) == 0 ? 0 : fs_fail(err, from);
}

int fs_touch(const char *path, struct err *err)
{
    int fd;

    if (utimensat(AT_FDCWD, path, NULL, 0) == 0)
        return 0;
    if (errno != ENOENT)
        return fs_fail(err, path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0)
        return fs_fail(err, path);
    close(fd);
    return 0;
}
