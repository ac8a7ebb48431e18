/* http/listing.h - what is in a folder that may be shown: the files and folders that a client could ask
 * for, folders first, each in byte order of the names.
 *
 * listing_read() blocks, and may run on any thread. */
#ifndef HTTP_LISTING_H
#define HTTP_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/files.h"

enum {
    LISTING_ENTRIES_MAX = 2000,  /* of one page: what comes first as the folder has it */
    LISTING_LOOKED_MAX  = 20000, /* at which nothing more is looked for, hidden or not */
};

struct listing_entry {
    size_t   name_at; /* in names; ends with a NUL */
    uint64_t size;
    int64_t  mtime_s;
    bool     is_folder;
};

struct listing {
    struct listing_entry *entries;
    unsigned              count;
    bool                  is_cut; /* there may be more */
    struct buf            names;
};

/* PATH is decoded and relative to FOLDER ("" is itself, others end in a slash). Symbolic links are followed
 * as for files_find(), so one that leads out is not shown. FILES_FOUND: listing_fini() is owed. */
enum files_outcome listing_read(const struct files_folder *folder, struct str path,
                                bool shows_dotfiles, struct listing *out);
void               listing_fini(struct listing *listing);

static inline const char *listing_name(const struct listing       *listing,
                                       const struct listing_entry *entry)
{
    return listing->names.at + entry->name_at;
}

#endif
