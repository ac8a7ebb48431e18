/* ev/fswatch.h - tells what changed in a folder tree, once it has been quiet for a moment.
 *
 * Built on inotify. Folders that come later are watched too; a file counts as changed when it was
 * closed after writing, renamed to or from its name, linked or removed, so an editor that replaces
 * it by a rename is one change and a half-written file none. Not looked at: hidden names
 * (.git), node_modules, editors' backups, logs, SQLite's files, and what the owner does not pick.
 * Symbolic links to folders are not followed. Belongs to the loop's thread. */
#ifndef EV_FSWATCH_H
#define EV_FSWATCH_H

#include <stdbool.h>

struct err;
struct fswatch;
struct loop;

enum {
    FSWATCH_QUIET_MS     = 50,   /* changes are told when none came for so long */
    FSWATCH_DELAY_MS_MAX = 500,  /* but no later than this after the first */
    FSWATCH_RETRY_MS     = 1000, /* between looks for a root that has gone */
    FSWATCH_FOLDERS_MAX  = 8192,
    FSWATCH_PATHS_MAX    = 256, /* told by name in one go */
};

struct fswatch_changes {
    const char *const *paths; /* each once, in order of first change; each begins with the root */
    unsigned           count;
    bool incomplete; /* more changed than is listed, or a new folder cannot be watched */
};

/* CHANGES is borrowed for the call. May close the watch. */
typedef void (*fswatch_fn)(const struct fswatch_changes *changes, void *arg);

/* Whether a change of PATH counts; of a folder when it has gone, with all that was in it. */
typedef bool (*fswatch_pick_fn)(const char *path, bool is_folder, void *arg);

/* ROOT is a folder, or one file. A root that is removed later is a change, and is watched again
 * when it comes back. ERR_NOT_FOUND, ERR_SYSTEM, or ERR_TOO_LARGE when the tree has more folders
 * than we or the kernel watch; the text says which limit and how to raise it. */
int fswatch_open(struct fswatch **out, struct loop *loop, const char *root, fswatch_fn on_change,
                 void *arg, struct err *err);
/* What PICK does not want is not told from now on; it gets the ARG of fswatch_open(). That the root
 * has gone or come back is always told. */
void fswatch_pick(struct fswatch *watch, fswatch_pick_fn pick);
/* NULL is fine. on_change() does not run again once this returns. */
void fswatch_close(struct fswatch *watch);

#endif
