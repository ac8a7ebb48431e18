#include "http/h2_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST = 64,
    LARGE    = H2_MEMORY_SIZES, /* in `size`: none of ours */
};

/* Before the bytes that nghttp2 gets; as long as malloc()'s alignment. */
struct h2_block {
    union {
        struct h2_block *next; /* kept */
        size_t           room; /* given out: of its bytes */
    };
    size_t size; /* which */
};

_Static_assert(sizeof(struct h2_block) % _Alignof(max_align_t) == 0, "what follows is aligned");

static struct h2_block *block_of(void *bytes)
{
    return (struct h2_block *)bytes - 1;
}

static size_t size_for(size_t bytes)
{
    size_t size = 0;

    while (size < LARGE && (size_t)SMALLEST << size < bytes)
        size++;
    return size;
}

static void *give_out(struct h2_block *block, size_t size, size_t room)
{
    if (!block)
        return NULL;
    block->size = size;
    block->room = room;
    return block + 1;
}

static void *take(size_t bytes, void *arg)
{
    struct h2_memory *memory = arg;
    size_t            size   = size_for(bytes);
    size_t            room   = size < LARGE ? (size_t)SMALLEST << size : bytes;
    struct h2_block  *block  = size < LARGE ? memory->kept[size] : NULL;

    if (!block)
        return give_out(malloc(sizeof(*block) + room), size, room);
    memory->kept[size] = block->next;
    memory->kept_count[size]--;
    return give_out(block, size, room);
}

static void *take_zeroed(size_t count, size_t bytes, void *arg)
{
    void *zeroed;

    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    zeroed = take(count * bytes, arg);
    if (zeroed)
        memset(zeroed, 0, count * bytes);
    return zeroed;
}

static void give_back(void *bytes, void *arg)
{
    struct h2_memory *memory = arg;
    struct h2_block  *block;

    if (!bytes)
        return;
    block = block_of(bytes);
    if (block->size == LARGE || memory->kept_count[block->size] == H2_MEMORY_KEPT_MAX) {
        free(block);
        return;
    }
    block->next               = memory->kept[block->size];
    memory->kept[block->size] = block;
    memory->kept_count[block->size]++;
}

static void *resize(void *bytes, size_t wanted, void *arg)
{
    size_t room = bytes ? block_of(bytes)->room : 0;
    void  *moved;

    if (wanted <= room)
        return bytes;
    moved = take(wanted, arg);
    if (moved && room)
        memcpy(moved, bytes, room);
    if (moved)
        give_back(bytes, arg);
    return moved;
}

void h2_memory_init(struct h2_memory *memory)
{
    *memory = (struct h2_memory){
        .calls = { memory, take, give_back, take_zeroed, resize },
    };
}

void h2_memory_fini(struct h2_memory *memory)
{
    for (size_t size = 0; size < H2_MEMORY_SIZES; size++) {
        while (memory->kept[size]) {
            struct h2_block *block = memory->kept[size];

            memory->kept[size] = block->next;
            free(block);
        }
    }
}
