/* base/arena.h - memory that is given back all at once, and cleanups that run then.
 *
 * An arena belongs to one thread. Its chunks come from the arena pool of the worker and go back
 * there, so a warm server allocates nothing for an exchange. The first one is small: it holds a plain
 * request, of which ten thousand may wait. What is larger than a chunk gets one of its own. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

enum {
    ARENA_FIRST_BYTES = 1008, /* 1 KiB with what malloc() adds */
    ARENA_CHUNK_BYTES = 4096,
};

struct arena_chunk;
struct arena_defer;

/* Chunks that wait to be used again. One for each thread. */
struct arena_pool {
    struct arena_chunk *free_first; /* of ARENA_FIRST_BYTES */
    struct arena_chunk *free;
    unsigned            free_count; /* of both */
    unsigned            free_max;   /* more than these go back to malloc */
};

struct arena {
    struct arena_pool  *pool;   /* borrowed, outlives the arena */
    struct arena_chunk *chunks; /* newest first */
    char               *at;     /* next free byte of the newest chunk */
    char               *end;
    struct arena_defer *defers; /* newest first */
};

void arena_pool_init(struct arena_pool *pool, unsigned free_max);
void arena_pool_fini(struct arena_pool *pool); /* empty then, and may be used again */

/* Allocates nothing yet. */
void arena_init(struct arena *arena, struct arena_pool *pool);
/* Runs the defers, last first, then gives all memory back. The arena may be used again. */
void arena_reset(struct arena *arena);

void *arena_alloc_slow(struct arena *arena, size_t bytes);

/* BYTES aligned to 8, not cleared. Ends the process when there is no memory: a server that
 * cannot get 4 KiB has no better way on, and no caller need look. */
static inline void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t size = (bytes + 7) & ~(size_t)7;
    char  *at   = arena->at;

    if ((size_t)(arena->end - at) < size)
        return arena_alloc_slow(arena, size);
    arena->at = at + size;
    return at;
}

void *arena_zalloc(struct arena *arena, size_t bytes);
/* A copy of S; its bytes are followed by a NUL that len does not count. */
struct str arena_copy(struct arena *arena, struct str s);

/* RUN(ARG) is called by arena_reset(), last booked first. */
void arena_defer(struct arena *arena, void (*run)(void *arg), void *arg);

#endif
