/* inotify watches folders by inode and tells of names in them by number, so this file keeps the
 * path of each number. Numbers only grow: appending keeps the table sorted.
 *
 * A folder is always watched before it is read: what is made in between is seen twice, never
 * missed. A folder that is renamed is forgotten under its old path and watched anew under the
 * other, since the kernel would go on counting it under the old number. */
#include "ev/fswatch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "ev/loop.h"
#include "ev/timer.h"

enum {
    WATCH_MASK = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK,
    EVENT_BYTES = 16384, /* read at once: 60 events or more */
};

struct folder {
    int   number; /* inotify's: "watch descriptor" */
    char *path;   /* owned */
};

struct path_list {
    char   **paths; /* owned, and so is each */
    unsigned count;
    unsigned room;
};

struct fswatch {
    struct loop *loop;
    fswatch_fn   on_change;
    void        *arg;

    fswatch_pick_fn pick; /* NULL: every change counts */
    bool            said_unwatched;

    char *root;        /* without a slash at its end */
    char *parent;      /* of a root that is a file; NULL for a folder */
    int   root_number; /* of the root, or its parent; -1 while it has gone */

    int       fd;
    struct io io;

    struct folder *folders; /* sorted by number */
    unsigned       folder_count;
    unsigned       folder_room;

    struct path_list changed;
    bool             incomplete;
    uint64_t         first_change_ms; /* of those not told yet; 0: there are none */
    struct timer     quiet;
    struct timer     retry;
};

/* --- names ---------------------------------------------------------------------------------- */

static const char *const ignored_names[] = {
    "node_modules", "4913", /* vim tries with it whether the folder can be written to */
};

static const char *const ignored_ends[] = {
    "~",
    ".swp",
    ".swx",
    ".tmp",
    ".bak",
    ".log",
    ".db",
    ".db-wal",
    ".db-shm",
    ".db-journal",
    ".sqlite",
    ".sqlite-wal",
    ".sqlite-shm",
    ".sqlite-journal",
    ".sqlite3",
    ".sqlite3-wal",
    ".sqlite3-shm",
    ".sqlite3-journal",
};

static bool is_ignored(const char *name)
{
    if (name[0] == '.' || name[0] == '#')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(ignored_names); i++)
        if (strcmp(name, ignored_names[i]) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(ignored_ends); i++)
        if (str_ends_with(str_of(name), str_of(ignored_ends[i])))
            return true;
    return false;
}

static char *join(const char *folder, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_within(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* --- what has changed ----------------------------------------------------------------------- */

/* Takes PATH, also when there is no memory: false then. */
static bool list_take(struct path_list *list, char *path)
{
    if (path && list->count == list->room) {
        unsigned room  = list->room ? 2 * list->room : 16;
        char   **paths = realloc(list->paths, room * sizeof(*paths));

        if (paths) {
            list->paths = paths;
            list->room  = room;
        }
    }
    if (!path || list->count == list->room) {
        free(path);
        return false;
    }
    list->paths[list->count++] = path;
    return true;
}

static void list_free(struct path_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct path_list){ 0 };
}

static bool has_path(const struct path_list *list, const char *path)
{
    for (unsigned i = 0; i < list->count; i++)
        if (strcmp(list->paths[i], path) == 0)
            return true;
    return false;
}

static void put_off(struct fswatch *watch)
{
    uint64_t now = loop_now_ms(watch->loop), last, wait = FSWATCH_QUIET_MS;

    if (watch->first_change_ms == 0)
        watch->first_change_ms = now;
    last = watch->first_change_ms + FSWATCH_DELAY_MS_MAX;
    if (now + wait > last)
        wait = last > now ? last - now : 0;
    timer_start(&watch->quiet, watch->loop, wait);
}

static bool is_picked(const struct fswatch *watch, const char *path, bool is_folder)
{
    return !watch->pick || strcmp(path, watch->root) == 0 ||
           watch->pick(path, is_folder, watch->arg);
}

static void note(struct fswatch *watch, const char *path, bool is_folder)
{
    struct path_list *changed = &watch->changed;

    if (!is_picked(watch, path, is_folder))
        return;
    put_off(watch);
    if (watch->incomplete && changed->count == FSWATCH_PATHS_MAX)
        return;
    if (has_path(changed, path))
        return;
    if (changed->count == FSWATCH_PATHS_MAX || !list_take(changed, strdup(path)))
        watch->incomplete = true;
}

/* What PATH is about is not known any more: whoever listens must look at everything. */
static void note_incomplete(struct fswatch *watch, const char *path)
{
    watch->incomplete = true;
    note(watch, path, true);
}

/* The callback may close the watch, so the list is the stack's by then. */
static void on_quiet(struct timer *timer)
{
    struct fswatch        *watch   = container_of(timer, struct fswatch, quiet);
    struct path_list       changed = watch->changed;
    struct fswatch_changes changes = {
        .paths      = (const char *const *)changed.paths,
        .count      = changed.count,
        .incomplete = watch->incomplete,
    };

    watch->changed         = (struct path_list){ 0 };
    watch->incomplete      = false;
    watch->first_change_ms = 0;
    watch->on_change(&changes, watch->arg);
    list_free(&changed);
}

/* --- folders -------------------------------------------------------------------------------- */

/* The place of NUMBER, or where it would stand. */
static unsigned find_place(const struct fswatch *watch, int number)
{
    unsigned low = 0, high = watch->folder_count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (watch->folders[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct folder *find_folder(const struct fswatch *watch, int number)
{
    unsigned place = find_place(watch, number);

    if (place == watch->folder_count || watch->folders[place].number != number)
        return NULL;
    return &watch->folders[place];
}

static bool make_room(struct fswatch *watch)
{
    unsigned       room = watch->folder_room ? 2 * watch->folder_room : 32;
    struct folder *folders;

    if (watch->folder_count < watch->folder_room)
        return true;
    folders = realloc(watch->folders, room * sizeof(*folders));
    if (!folders)
        return false;
    watch->folders     = folders;
    watch->folder_room = room;
    return true;
}

/* A number we have already is the same folder, perhaps under another path. */
static int remember(struct fswatch *watch, int number, const char *path, struct err *err)
{
    struct folder *known = find_folder(watch, number);
    unsigned       place = find_place(watch, number);
    char          *copy  = strdup(path);

    if (!copy || (!known && !make_room(watch))) {
        free(copy);
        return err_set(err, ERR_MEMORY, "no memory to watch %s", path);
    }
    if (known) {
        free(known->path);
        known->path = copy;
        return 0;
    }
    memmove(&watch->folders[place + 1], &watch->folders[place],
            (watch->folder_count - place) * sizeof(watch->folders[0]));
    watch->folders[place] = (struct folder){ number, copy };
    watch->folder_count++;
    return 0;
}

static void forget(struct fswatch *watch, struct folder *folder)
{
    unsigned after = watch->folder_count - (unsigned)(folder - watch->folders) - 1;

    if (folder->number == watch->root_number)
        watch->root_number = -1;
    free(folder->path);
    memmove(folder, folder + 1, after * sizeof(*folder));
    watch->folder_count--;
}

/* Stops watching PATH and what is below it, which has moved elsewhere. */
static void forget_tree(struct fswatch *watch, const char *path)
{
    for (unsigned i = watch->folder_count; i > 0; i--) {
        struct folder *folder = &watch->folders[i - 1];

        if (is_within(folder->path, path)) {
            inotify_rm_watch(watch->fd, folder->number);
            forget(watch, folder);
        }
    }
}

static int refuse_more(const struct fswatch *watch, struct err *err)
{
    return err_set(
        err, ERR_TOO_LARGE,
        "%s has too many folders to watch (%u so far): raise fs.inotify.max_user_watches "
        "or do without watching",
        watch->root, watch->folder_count);
}

/* Returns the number, or an error code. */
static int watch_folder(struct fswatch *watch, const char *path, struct err *err)
{
    bool is_top = strcmp(path, watch->parent ? watch->parent : watch->root) == 0;
    int  number, rc;

    if (watch->folder_count >= FSWATCH_FOLDERS_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s has more than %d folders to watch", watch->root,
                       FSWATCH_FOLDERS_MAX);
    number = inotify_add_watch(watch->fd, path, WATCH_MASK | (is_top ? 0u : IN_DONT_FOLLOW));
    if (number < 0)
        return errno == ENOSPC ? refuse_more(watch, err)
                               : err_set_errno(err, "cannot watch %s", path);
    rc = remember(watch, number, path, err);
    return rc < 0 ? rc : number;
}

static bool is_folder(const struct dirent *entry, const char *path)
{
    struct stat found;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return lstat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Puts the folders in PATH on PENDING. TELL: its files count as changed. */
static void read_folder(struct fswatch *watch, const char *path, bool tell,
                        struct path_list *pending)
{
    DIR           *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char *child = is_ignored(entry->d_name) ? NULL : join(path, entry->d_name);

        if (!child)
            continue;
        if (is_folder(entry, child)) {
            list_take(pending, child);
            continue;
        }
        if (tell)
            note(watch, child, false);
        free(child);
    }
    if (dir)
        closedir(dir);
}

/* A folder that went, or that we may not read, is none of the app's either. */
static bool is_serious(int rc)
{
    return rc == ERR_TOO_LARGE || rc == ERR_MEMORY;
}

/* Watches all folders below the first of PENDING, one after the other: a recursion would hold a
 * descriptor for each level. */
static int watch_pending(struct fswatch *watch, bool tell, struct path_list *pending,
                         struct err *err)
{
    while (pending->count > 0) {
        char *path = pending->paths[--pending->count];
        int   rc   = watch_folder(watch, path, err);

        if (rc >= 0)
            read_folder(watch, path, tell, pending);
        free(path);
        if (is_serious(rc))
            return rc;
    }
    return 0;
}

static int watch_tree(struct fswatch *watch, const char *top, bool tell, struct err *err)
{
    struct path_list pending = { 0 };
    int              rc;

    if (!list_take(&pending, strdup(top)))
        return err_set(err, ERR_MEMORY, "no memory to watch %s", top);
    rc = watch_pending(watch, tell, &pending, err);
    list_free(&pending);
    return rc;
}

static int watch_root(struct fswatch *watch, bool tell, struct err *err)
{
    const char *top = watch->parent ? watch->parent : watch->root;
    int         rc  = watch_folder(watch, top, err);

    if (rc < 0)
        return rc;
    watch->root_number = rc;
    return watch->parent ? 0 : watch_tree(watch, top, tell, err);
}

/* --- events --------------------------------------------------------------------------------- */

/* A folder that cannot be watched counts as changed, once, where its files would: who fills one
 * with thousands of folders of data is not to be told for each. */
static void on_new_folder(struct fswatch *watch, const char *path)
{
    struct err err;

    if (watch_tree(watch, path, true, &err) == 0)
        return;
    if (is_picked(watch, path, true))
        note_incomplete(watch, path);
    else if (!watch->said_unwatched)
        log_warn("changes in a new folder are not seen", "folder=%s reason=%s", path, err.text);
    watch->said_unwatched = true;
}

static void on_folder_event(struct fswatch *watch, uint32_t mask, const char *path)
{
    if (mask & (IN_CREATE | IN_MOVED_TO))
        on_new_folder(watch, path);
    if (mask & IN_MOVED_FROM)
        forget_tree(watch, path);
    if (mask & (IN_MOVED_FROM | IN_DELETE))
        note(watch, path, true);
}

/* A file that is being made is told when it is closed; a link is whole at once. */
static bool is_link(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0 &&
           (S_ISLNK(found.st_mode) || (S_ISREG(found.st_mode) && found.st_nlink > 1));
}

static void on_file_event(struct fswatch *watch, uint32_t mask, const char *path)
{
    if (!(mask & IN_CREATE) || is_link(path))
        note(watch, path, false);
}

static void on_name_event(struct fswatch *watch, const struct folder *folder,
                          const struct inotify_event *event)
{
    char *path = is_ignored(event->name) ? NULL : join(folder->path, event->name);

    if (!path)
        return;
    if (event->mask & IN_ISDIR)
        on_folder_event(watch, event->mask, path);
    else
        on_file_event(watch, event->mask, path);
    free(path);
}

/* The folder of a root that is a file: the other names in it are none of ours. */
static void on_sibling_event(struct fswatch *watch, const struct inotify_event *event)
{
    const char *slash = strrchr(watch->root, '/');

    if (strcmp(event->name, slash ? slash + 1 : watch->root) == 0)
        on_file_event(watch, event->mask, watch->root);
}

static void on_root_gone(struct fswatch *watch)
{
    forget_tree(watch, watch->parent ? watch->parent : watch->root);
    note_incomplete(watch, watch->root);
    timer_start(&watch->retry, watch->loop, FSWATCH_RETRY_MS);
}

static void on_retry(struct timer *timer)
{
    struct fswatch *watch = container_of(timer, struct fswatch, retry);

    if (watch_root(watch, true, NULL) < 0)
        timer_start(timer, watch->loop, FSWATCH_RETRY_MS);
    else
        note_incomplete(watch, watch->root);
}

/* Events were lost: folders may have come or gone. */
static void on_overflow(struct fswatch *watch)
{
    if (watch->root_number >= 0 && watch_root(watch, false, NULL) < 0)
        on_root_gone(watch);
    else
        note_incomplete(watch, watch->root);
}

static void on_inotify_event(struct fswatch *watch, const struct inotify_event *event)
{
    struct folder *folder = find_folder(watch, event->wd);

    if (event->mask & IN_Q_OVERFLOW)
        on_overflow(watch);
    else if (!folder)
        return; /* of a folder we have just forgotten */
    else if (event->wd == watch->root_number &&
             (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)))
        on_root_gone(watch);
    else if (event->mask & IN_IGNORED)
        forget(watch, folder);
    else if (event->len > 0 && watch->parent)
        on_sibling_event(watch, event);
    else if (event->len > 0)
        on_name_event(watch, folder, event);
}

static void on_readable(int fd, short what, void *arg)
{
    _Alignas(struct inotify_event) char bytes[EVENT_BYTES];
    const struct inotify_event         *event;
    ssize_t                             n = read(fd, bytes, sizeof(bytes));

    for (char *at = bytes; n > 0 && at < bytes + n; at += sizeof(*event) + event->len) {
        event = (const struct inotify_event *)at;
        on_inotify_event(arg, event);
    }
}

/* --- life ----------------------------------------------------------------------------------- */

static char *without_slash(const char *root)
{
    size_t len = strlen(root);

    while (len > 1 && root[len - 1] == '/')
        len--;
    return strndup(root, len);
}

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* A file is watched by its folder, for an editor may put another in its place. */
static int set_root(struct fswatch *watch, const char *root, struct err *err)
{
    struct stat found;

    if (stat(root, &found) < 0)
        return err_set_errno(err, "cannot watch %s", root);
    watch->root = without_slash(root);
    if (watch->root && !S_ISDIR(found.st_mode))
        watch->parent = parent_of(watch->root);
    if (!watch->root || (!S_ISDIR(found.st_mode) && !watch->parent))
        return err_set(err, ERR_MEMORY, "no memory to watch %s", root);
    return 0;
}

static int open_inotify(struct fswatch *watch, struct err *err)
{
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0 && errno == EMFILE)
        return err_set(err, ERR_TOO_LARGE,
                       "cannot watch %s: no inotify instance or descriptor is left (raise "
                       "fs.inotify.max_user_instances, or do without watching)",
                       watch->root);
    if (watch->fd < 0 || io_start_level(&watch->io, watch->loop, watch->fd, on_readable, watch) < 0)
        return err_set_errno(err, "cannot watch %s", watch->root);
    return 0;
}

int fswatch_open(struct fswatch **out, struct loop *loop, const char *root, fswatch_fn on_change,
                 void *arg, struct err *err)
{
    struct fswatch *watch = calloc(1, sizeof(*watch));
    int             rc;

    if (!watch)
        return err_set(err, ERR_MEMORY, "no memory to watch %s", root);
    watch->loop        = loop;
    watch->on_change   = on_change;
    watch->arg         = arg;
    watch->root_number = -1;
    watch->fd          = -1;
    timer_init(&watch->quiet, on_quiet);
    timer_init(&watch->retry, on_retry);

    rc = set_root(watch, root, err);
    if (rc == 0)
        rc = open_inotify(watch, err);
    if (rc == 0)
        rc = watch_root(watch, false, err);
    if (rc < 0) {
        fswatch_close(watch);
        return rc;
    }
    *out = watch;
    return 0;
}

void fswatch_pick(struct fswatch *watch, fswatch_pick_fn pick)
{
    watch->pick = pick;
}

void fswatch_close(struct fswatch *watch)
{
    if (!watch)
        return;
    timer_stop(&watch->quiet, watch->loop);
    timer_stop(&watch->retry, watch->loop);
    io_stop(&watch->io);
    if (watch->fd >= 0)
        close(watch->fd);
    for (unsigned i = 0; i < watch->folder_count; i++)
        free(watch->folders[i].path);
    free(watch->folders);
    list_free(&watch->changed);
    free(watch->root);
    free(watch->parent);
    free(watch);
}
