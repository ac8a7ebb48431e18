#include "vm/heap.h"

#include <stdint.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"

enum {
    MIB           = 1024 * 1024,
    SMALL_BYTES   = 64 * MIB,
    LARGE_BYTES   = 128 * MIB,
    PAUSE_SMALL   = 400, /* takes 15-24 % off the Lua time against 200 */
    PAUSE_MEDIUM  = 200,
    PAUSE_LARGE   = 120, /* a slice of 365 ms becomes 81 */
    STEP_KIB      = 16,  /* some 60 us; the atomic step takes what it takes */
    STEP_FROM_PCT = 90,  /* of the growth at which the collector would begin by itself */
    LENT_BYTES    = MIB,
    QUIET_BYTES   = 256 * 1024, /* garbage not worth an idle cycle */
};

/* LuaJIT's own allocator is a heap of its own for each state: no lock, and one munmap() gives all
 * of it back, where malloc() keeps what lies between other things. Hidden in libluajit.a, so the
 * linker finds it in a static build only; a distribution's shared library gets malloc(). */
extern void lj_alloc_destroy(void *arena) __attribute__((weak, visibility("hidden")));

#ifdef __SANITIZE_ADDRESS__
enum { OWN_ARENA = 0 }; /* so that the sanitizer sees every object's end */
#else
enum { OWN_ARENA = 1 };
#endif

static void *system_alloc(void *arena, void *ptr, size_t old_bytes, size_t bytes)
{
    if (bytes)
        return realloc(ptr, bytes);
    free(ptr);
    return NULL;
}

/* OLD_BYTES is 0 for a new object, BYTES 0 for a dead one. */
static void *counted_alloc(void *ud, void *ptr, size_t old_bytes, size_t bytes)
{
    struct heap *heap = ud;
    void        *at;

    if (unlikely(bytes > old_bytes && heap->used + (bytes - old_bytes) > heap->max))
        return NULL;
    at = heap->inner(heap->arena, ptr, old_bytes, bytes);
    if (likely(at || bytes == 0))
        heap->used += bytes - old_bytes;
    return at;
}

static bool has_own_arena(void)
{
    return OWN_ARENA && lj_alloc_destroy != NULL;
}

/* From LuaJIT's own counting to ours. */
static lua_State *take_over(struct heap *heap, lua_State *L)
{
    if (!L)
        return NULL;
    heap->inner = lua_getallocf(L, &heap->arena);
    heap->used  = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
    lua_setallocf(L, counted_alloc, heap);
    return L;
}

lua_State *heap_open(struct heap *heap, size_t bytes_max)
{
    lua_State *L;

    *heap = (struct heap){ .max = bytes_max, .inner = system_alloc };
    L     = has_own_arena() ? take_over(heap, luaL_newstate()) : lua_newstate(counted_alloc, heap);
    if (L)
        heap_adapt(heap, L);
    heap->live = heap->used;
    return L;
}

/* Lua frees the arena itself only where it knows the allocator as its own. */
void heap_close(struct heap *heap, lua_State *L)
{
    lua_close(L);
    if (has_own_arena())
        lj_alloc_destroy(heap->arena);
}

void heap_lend(struct heap *heap)
{
    if (heap->lent || heap->max > SIZE_MAX - LENT_BYTES)
        return;
    heap->lent = LENT_BYTES;
    heap->max += LENT_BYTES;
}

void heap_take_back(struct heap *heap)
{
    heap->max -= heap->lent;
    heap->lent = 0;
}

int heap_pause_for(size_t bytes)
{
    return bytes < SMALL_BYTES ? PAUSE_SMALL : bytes < LARGE_BYTES ? PAUSE_MEDIUM : PAUSE_LARGE;
}

void heap_adapt(struct heap *heap, lua_State *L)
{
    int pause = heap_pause_for(heap->used);

    if (likely(pause == heap->pause))
        return;
    heap->pause = pause;
    lua_gc(L, LUA_GCSETPAUSE, pause);
}

/* Lua does not tell when it has finished a cycle by itself; that the heap shrank is a sign. */
bool heap_is_due(const struct heap *heap)
{
    size_t live = heap->used < heap->live ? heap->used : heap->live;
    size_t room = live / 100 * (size_t)(heap->pause - 100);

    if (room < QUIET_BYTES)
        room = QUIET_BYTES;
    return heap->in_cycle || heap->again || heap->used - live >= room / 100 * STEP_FROM_PCT;
}

static void end_cycle(struct heap *heap)
{
    size_t freed = heap->begun_at > heap->used ? heap->begun_at - heap->used : 0;

    heap->again |= freed > MIB && freed > heap->used / 4;
    heap->live = heap->used;
}

bool heap_step(struct heap *heap, lua_State *L)
{
    heap_adapt(heap, L);
    if (heap->used < heap->live)
        heap->live = heap->used;
    if (!heap_is_due(heap))
        return false;
    if (!heap->in_cycle) {
        heap->begun_at = heap->used;
        heap->again    = false; /* asked for later, it is for the next one */
    }
    heap->in_cycle = lua_gc(L, LUA_GCSTEP, STEP_KIB) == 0;
    if (!heap->in_cycle)
        end_cycle(heap);
    return heap->in_cycle || heap->again;
}
