#include "bind/lcall_table.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
