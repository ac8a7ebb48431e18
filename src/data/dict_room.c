/* Each block begins with its size, in whose low bits stands whether it is free and whether the one before it
 * is; a free one ends with its size, too, so that the next one finds its beginning. The last block before
 * room->top is never free: it would be part of what lies beyond. */
#include "data/dict_room.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

enum {
    HEAD_BYTES  = sizeof(size_t),
    FIRST_AT    = DICT_ROOM_ALIGN - HEAD_BYTES, /* so that what is given out is aligned */
    BLOCK_MIN   = 32,                           /* a head, the links of a list, a size at the end */
    EXACT_BELOW = DICT_ROOM_EXACT * DICT_ROOM_ALIGN,
    EXACT_LOG   = 10, /* of EXACT_BELOW */
    LOOKS_MAX   = 8,  /* at blocks that may be too small, before a larger one is cut */

    IS_FREE        = 1,
    BEFORE_IS_FREE = 2,
    FLAGS          = 3,
};

struct block {
    size_t      head;
    struct list link; /* of a free one; else here begins what was given out */
};

/* --- blocks ------------------------------------------------------------------------------------ */

static struct block *block_at(const struct dict_room *room, size_t offset)
{
    return (struct block *)(void *)(room->at + FIRST_AT + offset);
}

static size_t offset_of(const struct dict_room *room, const struct block *block)
{
    return (size_t)((const char *)block - room->at) - FIRST_AT;
}

static size_t size_of(const struct block *block)
{
    return block->head & ~(size_t)FLAGS;
}

static struct block *after(const struct block *block)
{
    return (struct block *)(void *)((char *)block + size_of(block));
}

static size_t *end_size(const struct block *block)
{
    return (size_t *)(void *)((char *)after(block) - sizeof(size_t));
}

static struct block *before(const struct block *block)
{
    const size_t *size = (const size_t *)(const void *)block - 1;

    return (struct block *)(void *)((char *)block - *size);
}

/* --- lists of free blocks ------------------------------------------------------------------------ */

/* Four lists for each power of two: blocks of one of them differ by a quarter at most. */
static unsigned list_of(size_t size)
{
    unsigned log;

    if (size < EXACT_BELOW)
        return (unsigned)(size / DICT_ROOM_ALIGN);
    log = 63 - (unsigned)__builtin_clzll(size);
    return DICT_ROOM_EXACT + (log - EXACT_LOG) * 4 + (unsigned)(size >> (log - 2) & 3);
}

static void link_block(struct dict_room *room, struct block *block)
{
    unsigned list = list_of(size_of(block));

    block->head |= IS_FREE;
    *end_size(block) = size_of(block);
    after(block)->head |= BEFORE_IS_FREE;
    list_prepend(&room->free[list], &block->link);
    room->has[list / 64] |= UINT64_C(1) << list % 64;
}

static void unlink_block(struct dict_room *room, struct block *block)
{
    unsigned list = list_of(size_of(block));

    list_remove(&block->link);
    if (list_is_empty(&room->free[list]))
        room->has[list / 64] &= ~(UINT64_C(1) << list % 64);
    block->head &= ~(size_t)IS_FREE;
}

static struct block *block_of(struct list *node)
{
    return container_of(node, struct block, link);
}

/* One of the list that SIZE itself belongs to. */
static struct block *find_alike(struct dict_room *room, size_t size)
{
    unsigned looks = 0;

    list_each(node, &room->free[list_of(size)])
    {
        if (size_of(block_of(node)) >= size)
            return block_of(node);
        if (++looks == LOOKS_MAX)
            break;
    }
    return NULL;
}

/* One of the lists behind it: all of these are large enough. */
static struct block *find_larger(struct dict_room *room, size_t size)
{
    unsigned first = list_of(size) + 1;

    for (unsigned word = first / 64; word < ARRAY_LEN(room->has); word++) {
        uint64_t has = room->has[word];

        if (word == first / 64)
            has &= UINT64_MAX << first % 64;
        if (has)
            return block_of(room->free[word * 64 + (unsigned)__builtin_ctzll(has)].next);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------------ */

bool dict_room_init(struct dict_room *room, size_t bytes)
{
    void *at = mmap(NULL, bytes + DICT_ROOM_EDGES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *room = (struct dict_room){ .at = at == MAP_FAILED ? NULL : at, .bytes = bytes };
    for (unsigned i = 0; i < DICT_ROOM_LISTS; i++)
        list_init(&room->free[i]);
    return room->at != NULL;
}

void dict_room_fini(struct dict_room *room)
{
    if (room->at)
        munmap(room->at, room->bytes + DICT_ROOM_EDGES);
    room->at = NULL;
}

/* --- given out and taken back ---------------------------------------------------------------------- */

size_t dict_room_cost(size_t bytes)
{
    size_t cost = (bytes + HEAD_BYTES + DICT_ROOM_ALIGN - 1) / DICT_ROOM_ALIGN * DICT_ROOM_ALIGN;

    return cost < BLOCK_MIN ? BLOCK_MIN : cost;
}

/* What BLOCK has beyond SIZE becomes a free one, if it is large enough to be one. */
static void cut(struct dict_room *room, struct block *block, size_t size)
{
    size_t        rest = size_of(block) - size;
    struct block *other;

    if (rest < BLOCK_MIN) {
        after(block)->head &= ~(size_t)BEFORE_IS_FREE;
        return;
    }
    block->head = size | (block->head & FLAGS);
    other       = after(block);
    other->head = rest;
    link_block(room, other);
}

static struct block *take_top(struct dict_room *room, size_t size)
{
    struct block *block = block_at(room, room->top);

    if (size > room->bytes - room->top)
        return NULL;
    room->top += size;
    block->head        = size;
    after(block)->head = 0; /* of the next one, which is not there yet: this one is not free */
    return block;
}

void *dict_room_take(struct dict_room *room, size_t bytes)
{
    size_t        size  = dict_room_cost(bytes);
    struct block *block = find_alike(room, size);

    if (!block)
        block = find_larger(room, size);
    if (block) {
        unlink_block(room, block);
        cut(room, block, size);
    } else {
        block = take_top(room, size);
    }
    return block ? &block->link : NULL;
}

static struct block *join(struct block *first, const struct block *second)
{
    first->head += size_of(second);
    return first;
}

void dict_room_give_back(struct dict_room *room, void *at)
{
    struct block *block = container_of(at, struct block, link);
    struct block *next  = after(block);

    assert(!(block->head & IS_FREE));
    if (offset_of(room, next) < room->top && next->head & IS_FREE) {
        unlink_block(room, next);
        join(block, next);
    }
    if (block->head & BEFORE_IS_FREE) {
        struct block *previous = before(block);

        unlink_block(room, previous);
        block = join(previous, block);
    }
    if (offset_of(room, after(block)) == room->top)
        room->top = offset_of(room, block);
    else
        link_block(room, block);
}
