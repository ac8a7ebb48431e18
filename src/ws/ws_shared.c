#include "ws/ws_shared.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "ws/ws_reader.h"

static void on_limit(struct limit *limit)
{
    struct ws_due *due = container_of(limit, struct ws_due, limit);

    due->fn(due);
}

int ws_shared_open(struct ws_shared **out, struct loop *loop, struct err *err)
{
    struct ws_shared *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return err_set(err, ERR_MEMORY, "no memory for WebSockets");
    shared->loop = loop;
    ws_encoder_init(&shared->encoder);
    ws_deflater_init(&shared->deflater);
    list_init(&shared->readers);
    limit_queue_init(&shared->closings, loop, WS_CLOSE_MS, on_limit);
    *out = shared;
    return 0;
}

void ws_shared_close(struct ws_shared *shared)
{
    struct list *node;

    if (!shared)
        return;
    assert(shared->counts.sockets == 0);
    while ((node = list_take_first(&shared->readers)))
        ws_reader_free(container_of(node, struct ws_reader, link));
    limit_queue_fini(&shared->closings);
    ws_deflater_fini(&shared->deflater);
    ws_encoder_fini(&shared->encoder);
    free(shared);
}

struct ws_counts ws_shared_counts(const struct ws_shared *shared)
{
    struct ws_counts counts = shared->counts;

    counts.encoded  = shared->encoder.count;
    counts.deflated = shared->deflater.packed_count;
    return counts;
}

/* --- readers ---------------------------------------------------------------------------------------- */

struct ws_reader *ws_shared_lend(struct ws_shared *shared)
{
    struct list      *node = list_take_first(&shared->readers);
    struct ws_reader *reader;

    if (node)
        shared->reader_count--;
    reader = node ? container_of(node, struct ws_reader, link) : ws_reader_new();
    if (reader)
        shared->counts.lent++;
    return reader;
}

void ws_shared_take_back(struct ws_shared *shared, struct ws_reader *reader)
{
    shared->counts.lent--;
    limit_stop(&reader->pace.limit);
    if (!ws_reader_is_at_rest(reader) || shared->reader_count == WS_READERS_AT_REST) {
        ws_reader_free(reader);
        return;
    }
    ws_reader_drop(reader);
    list_prepend(&shared->readers, &reader->link);
    shared->reader_count++;
}

/* --- lengths of limits --------------------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* One in use whose length is next to MS. NULL: none is in use. */
static struct ws_beat *nearest(struct ws_shared *shared, uint64_t ms)
{
    struct ws_beat *best = NULL;

    for (unsigned i = 0; i < WS_BEATS_MAX; i++) {
        struct ws_beat *beat = &shared->beats[i];

        if (beat->sockets &&
            (!best || distance(beat->queue.limit_ms, ms) < distance(best->queue.limit_ms, ms)))
            best = beat;
    }
    return best;
}

static struct ws_beat *free_beat(struct ws_shared *shared)
{
    for (unsigned i = 0; i < WS_BEATS_MAX; i++)
        if (!shared->beats[i].sockets)
            return &shared->beats[i];
    return NULL;
}

struct ws_beat *ws_shared_beat(struct ws_shared *shared, uint64_t ms)
{
    struct ws_beat *beat, *fresh;

    if (ms == 0)
        return NULL;
    beat  = nearest(shared, ms);
    fresh = free_beat(shared);
    if (fresh && (!beat || beat->queue.limit_ms != ms)) {
        limit_queue_init(&fresh->queue, shared->loop, ms, on_limit);
        beat = fresh;
    }
    beat->sockets++;
    return beat;
}

/* The queue may be in its callback: only its timer is stopped. */
void ws_shared_drop_beat(struct ws_beat *beat)
{
    if (beat && --beat->sockets == 0)
        timer_stop(&beat->queue.tick, beat->queue.loop);
}
