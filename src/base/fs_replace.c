#include "base/fs_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/rand.h"

enum { STEP_BYTES = 1 << 20, COPY_ROOM = 64 * 1024 };

/* What will be the file. */
struct draft {
    char        target[PATH_MAX]; /* what is replaced: links are followed */
    char        path[PATH_MAX];
    int         fd;
    bool        replaces; /* there is a file already, */
    struct stat old;      /* this one */
};

/* --- drafts --------------------------------------------------------------------------------------- */

/* A link to nowhere is replaced itself. */
static int find_target(struct draft *draft, const char *path, struct err *err)
{
    size_t len = strlen(path);

    draft->replaces = stat(path, &draft->old) == 0;
    if (draft->replaces && !S_ISREG(draft->old.st_mode))
        return err_set(err, ERR_SYSTEM, "%s: is %s", path,
                       S_ISDIR(draft->old.st_mode) ? "a folder" : "no regular file");
    if (draft->replaces && realpath(path, draft->target))
        return 0;
    if (len >= sizeof(draft->target))
        return err_set(err, ERR_SYSTEM, "the path is too long");
    memcpy(draft->target, path, len + 1);
    return 0;
}

/* "folder/.XXXXXXXXXXXXXXXX.srv" */
static int name_draft(struct draft *draft, struct err *err)
{
    const char *slash  = strrchr(draft->target, '/');
    int         folder = slash ? (int)(slash - draft->target) + 1 : 0;
    char        id[RAND_ID_LEN];
    int         len;

    rand_id(id);
    len = snprintf(draft->path, sizeof(draft->path), "%.*s.%.*s.srv", folder, draft->target,
                   RAND_ID_LEN, id);
    return (size_t)len < sizeof(draft->path) ? 0 : err_set(err, ERR_SYSTEM, "the path is too long");
}

static int draft_open(struct draft *draft, const char *path, struct err *err)
{
    int rc = find_target(draft, path, err);

    if (rc == 0)
        rc = name_draft(draft, err);
    if (rc != 0)
        return rc;
    draft->fd = open(draft->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return draft->fd < 0 ? fs_fail(err, path) : 0;
}

static void draft_drop(struct draft *draft)
{
    close(draft->fd);
    unlink(draft->path);
}

/* Only root can give a file away: to keep its mode is what counts. */
static int keep_mode(struct draft *draft, const struct stat *of)
{
    if (draft->replaces && (draft->old.st_uid != geteuid() || draft->old.st_gid != getegid()) &&
        fchown(draft->fd, draft->old.st_uid, draft->old.st_gid) != 0 && errno != EPERM)
        return -1;
    return of ? fchmod(draft->fd, of->st_mode & 07777) : 0;
}

/* MODE_OF NULL: a new file's. */
static int draft_finish(struct draft *draft, const struct stat *mode_of, const char *path,
                        struct err *err)
{
    int rc = 0;

    if (keep_mode(draft, mode_of) != 0 || fsync(draft->fd) != 0)
        rc = fs_fail(err, path);
    if (close(draft->fd) != 0 && rc == 0)
        rc = fs_fail(err, path);
    if (rc == 0 && rename(draft->path, draft->target) != 0)
        rc = fs_fail(err, path);
    if (rc != 0)
        unlink(draft->path);
    return rc;
}

int fs_write(const char *path, struct str bytes, const atomic_bool *stop, struct err *err)
{
    struct draft draft;
    size_t       written;
    int          rc = draft_open(&draft, path, err);

    if (rc != 0)
        return rc;
    rc = fs_write_at(draft.fd, bytes, 0, &written, stop, path, err);
    if (rc == 0)
        return draft_finish(&draft, draft.replaces ? &draft.old : NULL, path, err);
    draft_drop(&draft);
    return rc;
}

/* --- copying -------------------------------------------------------------------------------------- */

/* The kernel copies, where both file systems let it. */
static bool is_not_offered(int number)
{
    return number == EXDEV || number == EINVAL || number == ENOSYS || number == EOPNOTSUPP ||
           number == EPERM || number == ETXTBSY;
}

/* The next bytes; 0 at the end, -1: errno. */
static ssize_t copy_some(int from, int to)
{
    char    bytes[COPY_ROOM];
    ssize_t n = read(from, bytes, sizeof(bytes)), done = 0;

    while (n > 0 && done < n) {
        ssize_t taken = write(to, bytes + done, (size_t)(n - done));

        if (taken < 0)
            return -1;
        done += taken;
    }
    return n;
}

/* Copying by the kernel is given up at the first step or not at all. An empty answer at once is not
 * believed either: files of /proc are said to be empty. */
static int copy_all(int from, int to, const atomic_bool *stop, const char *path, struct err *err)
{
    bool    by_kernel = true, any = false;
    ssize_t n;

    for (;;) {
        if (stop && atomic_load_explicit(stop, memory_order_relaxed))
            return err_set(err, ERR_CANCELLED, "%s: not wanted any more", path);
        n = by_kernel ? copy_file_range(from, NULL, to, NULL, STEP_BYTES, 0) : copy_some(from, to);
        if (by_kernel && !any && (n == 0 || (n < 0 && is_not_offered(errno)))) {
            by_kernel = false;
            continue;
        }
        if (n < 0)
            return fs_fail(err, path);
        if (n == 0)
            return 0;
        any = true;
    }
}

static int copy_open(int from, const char *path, const char *to, bool as_new,
                     const atomic_bool *stop, struct err *err)
{
    struct draft draft;
    struct stat  st;
    int          rc;

    if (fstat(from, &st) != 0)
        return fs_fail(err, path);
    rc = draft_open(&draft, to, err);
    if (rc != 0)
        return rc;
    rc = copy_all(from, draft.fd, stop, path, err);
    if (rc == 0 && as_new)
        return draft_finish(&draft, draft.replaces ? &draft.old : NULL, to, err);
    if (rc == 0)
        return draft_finish(&draft, &st, to, err);
    draft_drop(&draft);
    return rc;
}

int fs_copy(const char *from, const char *to, bool as_new, const atomic_bool *stop, struct err *err)
{
    int fd, rc = fs_open(from, O_RDONLY, &fd, err);

    if (rc != 0)
        return rc;
    rc = copy_open(fd, from, to, as_new, stop, err);
    close(fd);
    return rc;
}
