#include "bind/lcall.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lhttp.h"
#include "bind/lsite.h"
#include "vm/trace.h"

enum {
    CHUNK        = 64,
    CLEARED_FROM = offsetof(struct lcall, anchors),
    CLEARED_TO   = offsetof(struct lcall, found),
};

struct cell {
    struct lcall call;
    uint32_t     next_free; /* slot */
    bool         live;
};

struct lcall_table {
    struct cell **chunks; /* cells by slot: chunks[slot / CHUNK][slot % CHUNK] */
    uint32_t      chunk_count;
    uint32_t      first_free; /* NO_SLOT: a new chunk is due */
    uint32_t      live_count;
};

static const uint32_t NO_SLOT = UINT32_MAX;

static void *must(void *memory)
{
    if (!memory) {
        fputs("srv: out of memory\n", stderr);
        abort();
    }
    return memory;
}

struct lcall_table *lcall_table_new(void)
{
    struct lcall_table *table = must(calloc(1, sizeof(*table)));

    table->first_free = NO_SLOT;
    return table;
}

void lcall_table_free(struct lcall_table *table)
{
    if (!table)
        return;
    assert(table->live_count == 0);
    for (uint32_t i = 0; i < table->chunk_count; i++)
        free(table->chunks[i]);
    free(table->chunks);
    free(table);
}

static struct cell *cell_at(const struct lcall_table *table, uint32_t slot)
{
    return &table->chunks[slot / CHUNK][slot % CHUNK];
}

/* The lowest slots come first, so that Lua's anchors stay in the array part of their table. */
static void add_chunk(struct lcall_table *table)
{
    uint32_t first = table->chunk_count * CHUNK;

    table->chunks = must(realloc(table->chunks, (table->chunk_count + 1) * sizeof(*table->chunks)));
    table->chunks[table->chunk_count++] = must(calloc(CHUNK, sizeof(struct cell)));
    for (uint32_t i = CHUNK; i-- > 0;) {
        struct cell *cell = cell_at(table, first + i);

        cell->call.slot   = first + i;
        cell->call.seq    = 1;
        cell->next_free   = table->first_free;
        table->first_free = first + i;
    }
}

struct lcall *lcall_take(struct lcall_table *table)
{
    struct cell *cell;

    if (table->first_free == NO_SLOT) {
        if (table->chunk_count * CHUNK >= LCALL_SLOTS)
            return NULL;
        add_chunk(table);
    }
    cell              = cell_at(table, table->first_free);
    table->first_free = cell->next_free;
    cell->live        = true;
    table->live_count++;
    memset((char *)&cell->call + CLEARED_FROM, 0, CLEARED_TO - CLEARED_FROM);
    cell->call.announced = ANSWER_LENGTH_UNKNOWN;
    list_init(&cell->call.of_site);
    return &cell->call;
}

void lcall_give(struct lcall_table *table, struct lcall *call)
{
    struct cell *cell = cell_at(table, call->slot);

    assert(cell->live);
    cell->live = false;
    call->seq++;
    cell->next_free   = table->first_free;
    table->first_free = call->slot;
    table->live_count--;
}

double lcall_number(const struct lcall *call)
{
    return (double)call->seq * LCALL_SLOTS + call->slot;
}

struct lcall *lcall_find(const struct lcall_table *table, double number)
{
    uint64_t     whole = number >= 0 && number < 0x1p52 ? (uint64_t)number : 0;
    uint32_t     slot  = (uint32_t)(whole % LCALL_SLOTS);
    struct cell *cell;

    if (slot >= table->chunk_count * CHUNK)
        return NULL;
    cell = cell_at(table, slot);
    return cell->live && cell->call.seq == whole / LCALL_SLOTS ? &cell->call : NULL;
}

struct lcall *lcall_at(const struct lcall_table *table, const void *memory)
{
    for (uint32_t i = 0; i < table->chunk_count; i++) {
        struct cell *first = table->chunks[i], *cell = (struct cell *)memory;

        if (cell >= first && cell < first + CHUNK)
            return cell->live ? &cell->call : NULL;
    }
    return NULL;
}

/* --- for Lua ------------------------------------------------------------------------------------ */

/* A view has its number at 1. */
static double number_at(lua_State *L, int index)
{
    double number;

    if (lua_type(L, index) != LUA_TTABLE)
        return lua_tonumber(L, index);
    lua_rawgeti(L, index, 1);
    number = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return number;
}

struct lcall *lcall_to(lua_State *L, int index)
{
    struct lhttp *http = env_of(L)->http;

    return http ? lcall_find(lhttp_calls(http), number_at(L, index)) : NULL;
}

int lcall_misuse(lua_State *L, const char *format, ...)
{
    va_list args;

    trace_push_where(L);
    va_start(args, format);
    lua_pushvfstring(L, format, args);
    va_end(args);
    lua_concat(L, 2);
    return lua_error(L);
}

struct lcall *lcall_check(lua_State *L, int index)
{
    struct lcall *call = lcall_to(L, index);

    if (!call)
        lcall_misuse(L, "this request has ended (or `req` and `res` were called without a colon)");
    return call;
}

static void fini_buf(void *arg)
{
    buf_fini(arg);
}

struct buf *lcall_buf(struct lcall *call, size_t bytes_max)
{
    struct buf *b = arena_alloc(&call->ex->arena, sizeof(*b));

    buf_init(b, bytes_max);
    arena_defer(&call->ex->arena, fini_buf, b);
    return b;
}

struct str lcall_id(struct lcall *call)
{
    if (!call->has_id) {
        rand_id(call->id);
        call->has_id = true;
    }
    return str_make(call->id, sizeof(call->id));
}

const char *lcall_label(const struct lcall *call)
{
    return call->route ? call->route->label : "(no route)";
}

/* --- anchors ------------------------------------------------------------------------------------- */

/* One table for each kind, so that slots, which are dense, make arrays of them. */
static void push_anchors(lua_State *L, const struct lcall *call, enum lcall_anchor anchor)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->site->anchor_refs[anchor]);
}

void lcall_keep(lua_State *L, struct lcall *call, enum lcall_anchor anchor)
{
    push_anchors(L, call, anchor);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, (int)call->slot + 1);
    lua_pop(L, 2);
    call->anchors |= 1u << anchor;
}

void lcall_push_kept(lua_State *L, const struct lcall *call, enum lcall_anchor anchor)
{
    if (!(call->anchors & 1u << anchor)) {
        lua_pushnil(L);
        return;
    }
    push_anchors(L, call, anchor);
    lua_rawgeti(L, -1, (int)call->slot + 1);
    lua_remove(L, -2);
}

void lcall_forget(lua_State *L, struct lcall *call, enum lcall_anchor anchor)
{
    if (!(call->anchors & 1u << anchor))
        return;
    push_anchors(L, call, anchor);
    lua_pushnil(L);
    lua_rawseti(L, -2, (int)call->slot + 1); /* the place exists: nothing is allocated */
    lua_pop(L, 1);
    call->anchors &= ~(1u << anchor);
}
