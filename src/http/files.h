/* http/files.h - a folder whose files may be asked for, and finding one of them.
 *
 * A path of a client never leaves the folder: the kernel resolves it beneath the folder's own
 * descriptor (openat2), so neither "..", nor an absolute path, nor a symbolic link leads out,
 * whatever happens to the tree meanwhile. The folder is opened for each lookup: a deployment that puts
 * another in its place is seen at once. Files whose name begins with a dot are not there.
 *
 * files_find() asks the file system and may block on a slow one: it touches nothing but its
 * arguments, so it may run on a pool thread. */
#ifndef HTTP_FILES_H
#define HTTP_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/codings.h"

struct err;
struct files_folder;
struct request;
struct stat;

/* 0, or ERR_NOT_FOUND, ERR_SYSTEM. */
int files_open(struct files_folder **out, const char *path, struct err *err);
/* Files that were found stay open. NULL is fine. */
void files_close(struct files_folder *folder);

enum { FILES_CODINGS_MAX = 3 };

/* Compressed sisters that may be taken, best first: name.br, name.zst, name.gz. */
struct files_codings {
    unsigned        count;
    enum codings_id of[FILES_CODINGS_MAX];
};

struct files_rules {
    const char          *index;    /* for a path that ends in "/"; NULL: such a path is missing */
    bool                 dotfiles; /* names that begin with a dot too (".well-known" always) */
    struct files_codings codings;  /* the first of these that is there and not older is taken */
};

struct files_file {
    int             fd; /* owned by whoever called files_find() */
    uint64_t        size;
    uint64_t        inode;
    int64_t         mtime_s;
    uint32_t        mtime_ns;
    enum codings_id coding;
    struct str      name; /* decides the type: the path, or the index */
};

enum files_outcome {
    FILES_FOUND,
    FILES_MISSING,   /* 404; also what must not be shown */
    FILES_BAD_PATH,  /* 400: a NUL in it */
    FILES_IS_FOLDER, /* asked for without its slash: redirect */
    FILES_EXHAUSTED, /* 503: no descriptor or memory left */
};

/* PATH is decoded and relative to the folder ("" is the folder itself). Blocks; any thread. */
enum files_outcome files_find(const struct files_folder *folder, struct str path,
                              const struct files_rules *rules, struct files_file *out);

/* A folder beneath one that is served, for http/listing. Whoever opened it closes both. */
struct files_opened {
    int root_fd;
    int fd;
};

/* FILES_FOUND or why not. PATH: as for files_find(); of a folder, with or without its slash. */
enum files_outcome files_open_folder(const struct files_folder *folder, struct str path,
                                     bool shows_dotfiles, struct files_opened *out);

/* What a link of the folder leads to; PATH is seen from the root, and may be changed. False: out of it, or
 * nowhere. */
bool files_stat_beneath(const struct files_opened *opened, char *path, struct stat *out);

/* Those that REQUEST accepts, by its weights (Accept-Encoding). */
struct files_codings files_codings(const struct request *request);

#endif
