/* base/fs_replace.h - files that are there whole or not at all: written under another name in the same
 * folder, brought to the disk, then renamed over what was there. Whoever reads meanwhile reads the old
 * one, and after a crash it is one of the two.
 *
 * As base/fs.h: calls that block, STOP, errors. The file keeps mode and, where we may give it away,
 * owner; a link stays a link, and the file it points to is replaced. */
#ifndef BASE_FS_REPLACE_H
#define BASE_FS_REPLACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/str.h"

struct err;

int fs_write(const char *path, struct str bytes, const atomic_bool *stop, struct err *err);

/* TO gets what is in FROM, and its mode; with AS_NEW it keeps the mode it has, or gets a new file's. */
int fs_copy(const char *from, const char *to, bool as_new, const atomic_bool *stop,
            struct err *err);

#endif
