#include "http/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What one entry's name takes at most, with its NUL. */
enum { NAME_BYTES_MAX = NAME_MAX + 1 };

struct walk {
    struct files_opened opened;
    struct str          path;
    bool                shows_dotfiles;
    struct listing     *out;
};

/* --- one entry ----------------------------------------------------------------------------------------- */

static bool is_shown(const struct walk *walk, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    return (name[0] != '.' || walk->shows_dotfiles) && !strchr(name, '\\');
}

/* A link as it would be followed if a client asked for it. */
static bool stat_link(const struct walk *walk, const char *name, struct stat *st)
{
    size_t len = strlen(name);
    char   path[PATH_MAX];

    if (walk->path.len + len >= sizeof(path))
        return false;
    memcpy(path, walk->path.len ? walk->path.at : "", walk->path.len);
    memcpy(path + walk->path.len, name, len + 1);
    return files_stat_beneath(&walk->opened, path, st);
}

/* Gone meanwhile, a link that leads out, a pipe, a device: nothing that could be asked for. */
static bool look_at(const struct walk *walk, const char *name, struct stat *st)
{
    if (fstatat(walk->opened.fd, name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(st->st_mode) && !stat_link(walk, name, st))
        return false;
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
}

static void add_entry(struct listing *listing, const char *name, const struct stat *st)
{
    listing->entries[listing->count++] = (struct listing_entry){
        .name_at   = listing->names.len,
        .size      = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
        .mtime_s   = st->st_mtim.tv_sec,
        .is_folder = S_ISDIR(st->st_mode),
    };
    buf_add(&listing->names, name, strlen(name) + 1);
}

/* --- the folder ------------------------------------------------------------------------------------------ */

static void read_entries(struct walk *walk, DIR *folder)
{
    struct listing *out    = walk->out;
    unsigned        looked = 0;
    struct dirent  *entry;

    while ((entry = readdir(folder))) {
        struct stat st;

        if (++looked > LISTING_LOOKED_MAX) {
            out->is_cut = true;
            return;
        }
        if (!is_shown(walk, entry->d_name) || !look_at(walk, entry->d_name, &st))
            continue;
        if (out->count == LISTING_ENTRIES_MAX) {
            out->is_cut = true;
            return;
        }
        add_entry(out, entry->d_name, &st);
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct listing       *listing = arg;
    const struct listing_entry *one = a, *other = b;

    if (one->is_folder != other->is_folder)
        return one->is_folder ? -1 : 1;
    return strcmp(listing_name(listing, one), listing_name(listing, other));
}

/* Takes walk->opened.fd. */
static enum files_outcome read_folder(struct walk *walk)
{
    struct listing *out    = walk->out;
    DIR            *folder = fdopendir(walk->opened.fd);

    if (!folder) {
        close(walk->opened.fd);
        return FILES_EXHAUSTED;
    }
    read_entries(walk, folder);
    closedir(folder);
    if (out->names.failed)
        return FILES_EXHAUSTED;
    qsort_r(out->entries, out->count, sizeof(*out->entries), compare, out);
    return FILES_FOUND;
}

enum files_outcome listing_read(const struct files_folder *folder, struct str path,
                                bool shows_dotfiles, struct listing *out)
{
    struct walk        walk    = { .path = path, .shows_dotfiles = shows_dotfiles, .out = out };
    enum files_outcome outcome = files_open_folder(folder, path, shows_dotfiles, &walk.opened);

    if (outcome != FILES_FOUND)
        return outcome;
    *out = (struct listing){ .entries = calloc(LISTING_ENTRIES_MAX, sizeof(*out->entries)) };
    buf_init(&out->names, (size_t)LISTING_ENTRIES_MAX * NAME_BYTES_MAX);
    if (out->entries) {
        outcome = read_folder(&walk);
    } else {
        close(walk.opened.fd);
        outcome = FILES_EXHAUSTED;
    }
    close(walk.opened.root_fd);
    if (outcome != FILES_FOUND)
        listing_fini(out);
    return outcome;
}

void listing_fini(struct listing *listing)
{
    free(listing->entries);
    buf_fini(&listing->names);
    *listing = (struct listing){ 0 };
}
