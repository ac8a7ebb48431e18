/* vm/heap.h - the memory of one Lua state: an allocator with a bound, and when to collect. */
#ifndef VM_HEAP_H
#define VM_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

struct heap {
    size_t    used; /* bytes that Lua has now, and that are charged to it */
    size_t    max;  /* more is refused; SIZE_MAX: no bound */
    size_t    lent; /* of max, until heap_take_back() */
    lua_Alloc inner;
    void     *arena;    /* inner's */
    int       pause;    /* the collector's present setting, in percent */
    size_t    live;     /* bytes after the last cycle that we know of */
    size_t    begun_at; /* bytes when our present cycle began */
    bool      in_cycle; /* we have begun one and will finish it */
    bool      again;    /* another is worth it: this one freed much, or a burst has ended */
};

/* A Lua state whose every byte is counted; NULL: no memory. HEAP stays where it is, and is UD of
 * lua_getallocf(): it is how a state's VM is found. */
lua_State *heap_open(struct heap *heap, size_t bytes_max);
/* lua_close(), then all memory goes back at once. */
void heap_close(struct heap *heap, lua_State *L);

/* Counts memory outside of Lua that belongs to what Lua code does; heap_has_room() asks before. */
static inline bool heap_has_room(const struct heap *heap, size_t bytes)
{
    return heap->used <= heap->max && bytes <= heap->max - heap->used;
}

static inline void heap_charge(struct heap *heap, size_t bytes)
{
    heap->used += bytes;
}

static inline void heap_discharge(struct heap *heap, size_t bytes)
{
    heap->used -= bytes;
}

/* Raises the bound a little, so that an error about it can be dealt with. Idempotent. */
void heap_lend(struct heap *heap);
void heap_take_back(struct heap *heap);

/* The pause for a heap of BYTES: rarely while it is small, for that is cheapest; soon when it is
 * large, for the last slice of a cycle grows with the number of strings (CORE, fact 16). */
int heap_pause_for(size_t bytes);

/* Sets the pause that fits now; two comparisons when nothing changes. */
void heap_adapt(struct heap *heap, lua_State *L);

/* Whether a step would do something. */
bool heap_is_due(const struct heap *heap);

/* A small step of a cycle if one is due. Runs finalizers: call it protected. True: not finished. */
bool heap_step(struct heap *heap, lua_State *L);

#endif
