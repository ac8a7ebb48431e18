/* Where tasks lie: cells in chunks that stay where they are, so that a number finds a cell (tickets). */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "vm/task_impl.h"

static void init_cell(struct task *task, uint32_t slot, uint32_t seq, timer_fn on_wait_timeout)
{
    list_init(&task->queued);
    list_init(&task->of_vm);
    list_init(&task->sibling);
    list_init(&task->children);
    list_init(&task->held);
    timer_init(&task->wait.timer, on_wait_timeout);
    deadline_init(task);
    task->defers = LUA_NOREF;
    task->slot   = slot;
    task->seq    = seq;
}

/* A server that cannot get some KiB has no better way on, and so no caller need look. */
static void *must_have(void *memory)
{
    if (memory)
        return memory;
    fputs("srv: out of memory\n", stderr);
    abort();
}

static unsigned vacant_place(struct sched *sched)
{
    unsigned index = 0;

    if (sched->vacant_chunks == 0) {
        index = sched->chunk_count++;
        sched->chunks =
            must_have(realloc(sched->chunks, sched->chunk_count * sizeof(*sched->chunks)));
        return index;
    }
    sched->vacant_chunks--;
    while (sched->chunks[index])
        index++;
    return index;
}

void cell_add_chunk(struct sched *sched, timer_fn on_wait_timeout)
{
    unsigned     index = vacant_place(sched);
    struct task *chunk = must_have(calloc(TASK_CHUNK, sizeof(*chunk)));

    sched->chunks[index] = chunk;
    for (unsigned i = 0; i < TASK_CHUNK; i++) {
        init_cell(&chunk[i], index * TASK_CHUNK + i, sched->first_seq, on_wait_timeout);
        list_append(&sched->free, &chunk[i].queued);
    }
}

static bool is_idle(const struct task *chunk)
{
    for (unsigned i = 0; i < TASK_CHUNK; i++)
        if (list_is_linked(&chunk[i].of_vm))
            return false;
    return true;
}

static void give_back(struct sched *sched, unsigned index)
{
    struct task *chunk = sched->chunks[index];

    for (unsigned i = 0; i < TASK_CHUNK; i++) {
        list_remove(&chunk[i].queued);
        if (chunk[i].seq >= sched->first_seq)
            sched->first_seq = chunk[i].seq + 1;
    }
    free(chunk);
    sched->chunks[index] = NULL;
    sched->vacant_chunks++;
}

void cell_trim(struct sched *sched)
{
    for (unsigned i = 1; i < sched->chunk_count; i++) /* one stays for what comes */
        if (sched->chunks[i] && is_idle(sched->chunks[i]))
            give_back(sched, i);
}

struct task *cell_at(const struct sched *sched, uint32_t slot)
{
    unsigned index = slot / TASK_CHUNK;

    if (index >= sched->chunk_count || !sched->chunks[index])
        return NULL;
    return &sched->chunks[index][slot % TASK_CHUNK];
}
