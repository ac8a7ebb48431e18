/* base/fs.h - what an app does with files and folders, as calls that block: for threads of the pool.
 *
 * Paths end in NUL and are taken as they are. What is long takes STOP, which another thread may set:
 * it is looked at between two steps, and ERR_CANCELLED comes back. Only regular files are opened, so
 * that no pipe holds a thread up. Errors are base/err's, with the path in front:
 * ERR_NOT_FOUND, EXISTS, DENIED, NOT_EMPTY, NO_SPACE, TOO_LARGE, MEMORY, and SYSTEM for all else. */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct buf;
struct err;

enum { FS_NAMES_BYTES_MAX = 16 << 20 }; /* of the names in one folder */

/* err_set_errno(), with the errors that only files have. */
int fs_fail(struct err *err, const char *path);

/* --- looking ------------------------------------------------------------------------------------- */

enum fs_kind { FS_FILE, FS_FOLDER, FS_OTHER };

struct fs_stat {
    uint64_t     size;
    double       mtime; /* seconds since 1970 */
    unsigned     mode;  /* permissions: 0644 */
    enum fs_kind kind;
};

/* Follows links. */
int fs_stat(const char *path, struct fs_stat *out, struct err *err);

/* What tells a file from what it was before, or from another that took its place. */
struct fs_mark {
    uint64_t inode, size;
    int64_t  changed_ns;
};

/* Zeroes, if there is none. */
struct fs_mark fs_mark(const char *path);
bool           fs_mark_is_same(struct fs_mark a, struct fs_mark b);

/* Appends the names in the folder, but for "." and "..", in byte order, each with its NUL. */
int fs_list(const char *path, struct buf *names, struct err *err);

/* Appends what is in the file; ERR_TOO_LARGE beyond LIMIT bytes. */
int fs_read(const char *path, size_t limit, struct buf *to, const atomic_bool *stop,
            struct err *err);

/* --- changing ------------------------------------------------------------------------------------ */

/* FLAGS as of open(2); O_CLOEXEC comes by itself. */
int fs_open(const char *path, int flags, int *fd, struct err *err);

/* All of BYTES at OFFSET, or at the end if FD was opened so; *WRITTEN counts, also after an error. */
int fs_write_at(int fd, struct str bytes, int64_t offset, size_t *written, const atomic_bool *stop,
                const char *path, struct err *err);

int fs_append(const char *path, struct str bytes, const atomic_bool *stop, struct err *err);

/* With the folders on the way to it; one that is there already is fine. */
int fs_mkdir(const char *path, struct err *err);

/* A file, a link, or a folder: an empty one, or with RECURSIVE all that is in it. Links are not
 * followed. */
int fs_remove(const char *path, bool recursive, const atomic_bool *stop, struct err *err);

int fs_rename(const char *from, const char *to, struct err *err);

/* Makes the file, or says that it was changed now. */
int fs_touch(const char *path, struct err *err);

#endif
