#include "server/edits.h"

#include <string.h>

#include "base/str.h"
#include "bind/chunks.h"
#include "bind/sources.h"

/* PATH is relative to the root. */
static bool is_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_code(const char *path)
{
    return str_ends_with(str_of(path), STR(".lua")) || str_ends_with(str_of(path), STR(".so"));
}

bool edits_has(const struct edits *edits, const char *path, bool is_folder)
{
    const char *below = path + strlen(edits->root);

    below += *below == '/';
    if (is_in(below, "views") || is_in(below, "migrations"))
        return true;
    if (is_folder ? chunks_lie_in(edits->chunks, path) : is_code(below))
        return true;
    return sources_touch(edits->sources, path);
}
