#include "bind/sources.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct sources {
    pthread_mutex_t lock;
    char           *paths[SOURCES_MAX];
    unsigned        count;
};

int sources_open(struct sources **out, struct err *err)
{
    struct sources *sources = calloc(1, sizeof(*sources));

    if (!sources)
        return err_set(err, ERR_MEMORY, "no memory for the names of an app's files");
    pthread_mutex_init(&sources->lock, NULL);
    *out = sources;
    return 0;
}

void sources_close(struct sources *sources)
{
    if (!sources)
        return;
    for (unsigned i = 0; i < sources->count; i++)
        free(sources->paths[i]);
    pthread_mutex_destroy(&sources->lock);
    free(sources);
}

static size_t len_without_slash(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

/* Under the lock. */
static bool has(const struct sources *sources, const char *path, size_t len)
{
    for (unsigned i = 0; i < sources->count; i++)
        if (strlen(sources->paths[i]) == len && memcmp(sources->paths[i], path, len) == 0)
            return true;
    return false;
}

/* Under the lock. */
static bool add(struct sources *sources, const char *path, size_t len)
{
    char *copy;

    if (has(sources, path, len))
        return true;
    copy = sources->count < SOURCES_MAX ? strndup(path, len) : NULL;
    if (!copy)
        return false;
    sources->paths[sources->count++] = copy;
    return true;
}

bool sources_add(struct sources *sources, const char *path)
{
    bool added;

    if (!sources)
        return true;
    pthread_mutex_lock(&sources->lock);
    added = add(sources, path, len_without_slash(path));
    pthread_mutex_unlock(&sources->lock);
    return added;
}

/* Whether one of them is the other, or a folder above it. */
static bool are_related(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (!*a && (!*b || *b == '/')) || (!*b && *a == '/');
}

bool sources_touch(struct sources *sources, const char *path)
{
    bool touched = false;

    pthread_mutex_lock(&sources->lock);
    for (unsigned i = 0; i < sources->count && !touched; i++)
        touched = are_related(sources->paths[i], path);
    pthread_mutex_unlock(&sources->lock);
    return touched;
}
