#include "base/temps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"

#define PREFIX "srv-temp-"

enum { TRIES_MAX = 3 }; /* of a folder that somebody removes as soon as it is there */

struct temps {
    pthread_mutex_t mutex;
    int             folder; /* its descriptor, which holds the lock; -1: not made yet */
    char            path[PATH_MAX];
};

static const char *parent(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder ? folder : "/tmp";
}

/* --- what was left behind --------------------------------------------------------------------------- */

/* Files alone: an app that makes folders in there has its reasons, and they stay. */
static void remove_files(int folder)
{
    int            own  = dup(folder);
    DIR           *dir  = own >= 0 ? fdopendir(own) : NULL;
    struct dirent *name = NULL;

    while (dir && (name = readdir(dir)))
        unlinkat(folder, name->d_name, 0);
    if (dir)
        closedir(dir);
    else if (own >= 0)
        close(own);
}

static bool is_ours(int folder)
{
    struct stat st;

    return fstat(folder, &st) == 0 && st.st_uid == geteuid();
}

/* The lock is kept until the folder is gone, so that nobody moves in meanwhile. */
static void remove_left(int above, const char *name)
{
    int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0)
        return;
    if (is_ours(folder) && flock(folder, LOCK_EX | LOCK_NB) == 0) {
        remove_files(folder);
        unlinkat(above, name, AT_REMOVEDIR);
    }
    close(folder);
}

static void sweep(void)
{
    DIR           *dir  = opendir(parent());
    struct dirent *name = NULL;

    while (dir && (name = readdir(dir)))
        if (str_starts_with(str_of(name->d_name), STR(PREFIX)))
            remove_left(dirfd(dir), name->d_name);
    if (dir)
        closedir(dir);
}

/* --- life --------------------------------------------------------------------------------------------- */

int temps_open(struct temps **out, struct err *err)
{
    struct temps *temps = calloc(1, sizeof(*temps));

    if (!temps)
        return err_set(err, ERR_MEMORY, "no memory for temporary files");
    pthread_mutex_init(&temps->mutex, NULL);
    temps->folder = -1;
    sweep();
    *out = temps;
    return 0;
}

void temps_close(struct temps *temps)
{
    if (!temps)
        return;
    if (temps->folder >= 0) {
        remove_files(temps->folder);
        rmdir(temps->path);
        close(temps->folder);
    }
    pthread_mutex_destroy(&temps->mutex);
    free(temps);
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* Another process may have swept it away before it was locked. */
static bool is_there(const struct temps *temps)
{
    struct stat at_path, opened;

    return stat(temps->path, &at_path) == 0 && fstat(temps->folder, &opened) == 0 &&
           at_path.st_ino == opened.st_ino && at_path.st_dev == opened.st_dev;
}

/* Where the file system has no locks nobody else gets this one either: the folder stays ours all the same. */
static void lock(int folder)
{
    while (flock(folder, LOCK_EX) != 0 && errno == EINTR)
        ;
}

static int make_folder(struct temps *temps, struct err *err)
{
    int len = snprintf(temps->path, sizeof(temps->path), "%s/" PREFIX "XXXXXX", parent());

    if (len < 0 || (size_t)len >= sizeof(temps->path))
        return err_set(err, ERR_SYSTEM, "the path of a temporary file would be too long");
    if (!mkdtemp(temps->path))
        return fs_fail(err, temps->path);
    temps->folder = open(temps->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (temps->folder < 0)
        return fs_fail(err, temps->path);
    lock(temps->folder);
    return 0;
}

static void leave_folder(struct temps *temps)
{
    if (temps->folder >= 0)
        close(temps->folder);
    temps->folder = -1;
}

/* With the mutex. Programs that clean /tmp may remove a folder that nothing was put into for long. */
static int find_folder(struct temps *temps, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < TRIES_MAX; i++) {
        if (temps->folder >= 0 && is_there(temps))
            return 0;
        leave_folder(temps);
        rc = make_folder(temps, err);
        if (rc != 0)
            return rc;
    }
    return err_set(err, ERR_SYSTEM, "%s: somebody removes it again and again", temps->path);
}

static int path_in(const struct temps *temps, const char *suffix, char *path, size_t room,
                   struct err *err)
{
    int len = snprintf(path, room, "%s/XXXXXX%s", temps->path, suffix);

    return len < 0 || (size_t)len >= room
               ? err_set(err, ERR_SYSTEM, "the path of a temporary file would be too long")
               : 0;
}

int temps_file(struct temps *temps, const char *suffix, char *path, size_t room, int *fd,
               struct err *err)
{
    int rc;

    pthread_mutex_lock(&temps->mutex);
    rc = find_folder(temps, err);
    if (rc == 0)
        rc = path_in(temps, suffix, path, room, err);
    pthread_mutex_unlock(&temps->mutex);
    if (rc != 0)
        return rc;
    *fd = mkostemps(path, (int)strlen(suffix), O_CLOEXEC);
    return *fd < 0 ? fs_fail(err, path) : 0;
}
