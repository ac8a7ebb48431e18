#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t              bytes; /* of the data that follows */
    char                data[] __attribute__((aligned(8)));
};

struct arena_defer {
    struct arena_defer *next;
    void (*run)(void *arg);
    void *arg;
};

enum {
    FIRST_DATA_BYTES = ARENA_FIRST_BYTES - sizeof(struct arena_chunk),
    CHUNK_DATA_BYTES = ARENA_CHUNK_BYTES - sizeof(struct arena_chunk),
};

void arena_pool_init(struct arena_pool *pool, unsigned free_max)
{
    *pool = (struct arena_pool){ .free_max = free_max };
}

static void free_chunks(struct arena_chunk *chunk)
{
    while (chunk) {
        struct arena_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
}

void arena_pool_fini(struct arena_pool *pool)
{
    free_chunks(pool->free_first);
    free_chunks(pool->free);
    arena_pool_init(pool, pool->free_max);
}

/* Where those of BYTES wait; NULL: they are made for one piece. */
static struct arena_chunk **kept(struct arena_pool *pool, size_t bytes)
{
    switch (bytes) {
    case FIRST_DATA_BYTES: return &pool->free_first;
    case CHUNK_DATA_BYTES: return &pool->free;
    default: return NULL;
    }
}

static struct arena_chunk *new_chunk(size_t bytes)
{
    struct arena_chunk *chunk = malloc(sizeof(*chunk) + bytes);

    if (!chunk) {
        fputs("srv: out of memory\n", stderr);
        abort();
    }
    chunk->bytes = bytes;
    return chunk;
}

static struct arena_chunk *take_chunk(struct arena_pool *pool, size_t bytes)
{
    struct arena_chunk **spare = kept(pool, bytes), *chunk = spare ? *spare : NULL;

    if (!chunk)
        return new_chunk(bytes);
    *spare = chunk->next;
    pool->free_count--;
    return chunk;
}

static void give_chunk(struct arena_pool *pool, struct arena_chunk *chunk)
{
    struct arena_chunk **spare = kept(pool, chunk->bytes);

    if (!spare || pool->free_count >= pool->free_max) {
        free(chunk);
        return;
    }
    chunk->next = *spare;
    *spare      = chunk;
    pool->free_count++;
}

void arena_init(struct arena *arena, struct arena_pool *pool)
{
    *arena = (struct arena){ .pool = pool };
}

void arena_reset(struct arena *arena)
{
    while (arena->defers) {
        struct arena_defer *defer = arena->defers;

        arena->defers = defer->next;
        defer->run(defer->arg);
    }
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        give_chunk(arena->pool, chunk);
    }
    arena->at = arena->end = NULL;
}

static size_t chunk_bytes(const struct arena *arena, size_t bytes)
{
    if (!arena->chunks && bytes <= FIRST_DATA_BYTES)
        return FIRST_DATA_BYTES;
    return bytes > CHUNK_DATA_BYTES ? bytes : CHUNK_DATA_BYTES;
}

void *arena_alloc_slow(struct arena *arena, size_t bytes)
{
    struct arena_chunk *chunk = take_chunk(arena->pool, chunk_bytes(arena, bytes));

    /* A large chunk goes behind the current one, whose rest stays in use. */
    if (chunk->bytes > CHUNK_DATA_BYTES && arena->chunks) {
        chunk->next         = arena->chunks->next;
        arena->chunks->next = chunk;
        return chunk->data;
    }
    chunk->next   = arena->chunks;
    arena->chunks = chunk;
    arena->at     = chunk->data + bytes;
    arena->end    = chunk->data + chunk->bytes;
    return chunk->data;
}

void *arena_zalloc(struct arena *arena, size_t bytes)
{
    return memset(arena_alloc(arena, bytes), 0, bytes);
}

struct str arena_copy(struct arena *arena, struct str s)
{
    char *at = arena_alloc(arena, s.len + 1);

    if (s.len)
        memcpy(at, s.at, s.len);
    at[s.len] = '\0';
    return str_make(at, s.len);
}

void arena_defer(struct arena *arena, void (*run)(void *arg), void *arg)
{
    struct arena_defer *defer = arena_alloc(arena, sizeof(*defer));

    *defer        = (struct arena_defer){ arena->defers, run, arg };
    arena->defers = defer;
}
