/* tests/support/modules.h - where tests/modules has been built, and folders to copy it to. */
#ifndef TESTS_SUPPORT_MODULES_H
#define TESTS_SUPPORT_MODULES_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "BUILD/tests/modules/NAME.so" of the build that this program is from. */
static inline const char *module_path(const char *name)
{
    static char path[PATH_MAX];
    ssize_t     len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char       *end;

    path[len > 0 ? len : 0] = '\0';
    end                     = strrchr(path, '/');
    snprintf(end, sizeof(path) - (size_t)(end - path), "/modules/%s.so", name);
    return path;
}

static inline void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) {
        perror(path);
        abort();
    }
}

/* The whole file, to be freed. */
static inline char *read_whole(const char *path, size_t *len)
{
    FILE *file  = fopen(path, "rb");
    char *bytes = NULL;
    long  size;

    if (!file) {
        perror(path);
        abort();
    }
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    bytes = malloc((size_t)size);
    *len  = fread(bytes, 1, (size_t)size, file);
    fclose(file);
    return bytes;
}

/* A new file in the place of TO, as an editor or a build leaves it. */
static inline void copy_module(const char *name, const char *to)
{
    size_t len;
    char  *bytes = read_whole(module_path(name), &len);

    unlink(to);
    write_file(to, bytes, len);
    free(bytes);
}

/* A folder of this test's own; PATTERN ends in XXXXXX. */
static inline const char *make_folder(char *pattern)
{
    if (!mkdtemp(pattern)) {
        perror(pattern);
        abort();
    }
    return pattern;
}

#endif
