/* server/edits.h - which changes of files in an app's folder are edits of the app, so that it is
 * loaded anew: those of its Lua files and native modules, of its views and migrations, and of what
 * it has named (bind/sources.h). What it writes itself (data, uploads) and files that are looked at
 * when they are asked for (public) are none. */
#ifndef SERVER_EDITS_H
#define SERVER_EDITS_H

#include <stdbool.h>

struct chunks;
struct sources;

struct edits {
    const char     *root;   /* the app's folder, absolute */
    struct chunks  *chunks; /* says which folders hold loaded code */
    struct sources *sources;
};

/* PATH lies below the root. A folder is told when it has gone, or cannot be watched. */
bool edits_has(const struct edits *edits, const char *path, bool is_folder);

#endif
