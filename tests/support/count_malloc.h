/* tests/support/count_malloc.h - counts what a program allocates: for claims that something does not.
 *
 * COUNTS_MALLOC is defined where it does. The sanitizers have an allocator of their own, which must not be stood
 * in for. */
#ifndef TESTS_SUPPORT_COUNT_MALLOC_H
#define TESTS_SUPPORT_COUNT_MALLOC_H

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC

#include <dlfcn.h>
#include <stddef.h>

static unsigned long malloc_count;

void *malloc(size_t bytes)
{
    static void *(*real)(size_t bytes);

    if (!real)
        real = (void *(*)(size_t bytes))dlsym(RTLD_NEXT, "malloc");
    malloc_count++;
    return real(bytes);
}

void *realloc(void *block, size_t bytes)
{
    static void *(*real)(void *block, size_t bytes);

    if (!real)
        real = (void *(*)(void *block, size_t bytes))dlsym(RTLD_NEXT, "realloc");
    malloc_count++;
    return real(block, bytes);
}

#endif

#endif
