#include "vm/profile_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* What tells frames apart, as bytes: numbers, then the text. */
struct frame_key {
    uint32_t  kind;
    int       line, defined;
    uint32_t  text_bytes;
    uintptr_t address;
    char      text[PROFILE_TEXT_BYTES];
};

struct kept_frame {
    struct profile_frame frame;
    char                 name[PROFILE_TEXT_BYTES];
    struct frame_key     key; /* as long as its text is */
};

struct stack_key {
    uint32_t                    state;
    uint32_t                    depth;
    const struct profile_frame *frames[PROFILE_DEPTH_MAX];
};

struct kept_stack {
    struct profile_stack stack;
    struct stack_key     key; /* as long as the stack is deep */
};

void profile_store_init(struct profile_store *store)
{
    *store = (struct profile_store){ 0 };
    map_init(&store->frames);
    map_init(&store->stacks);
}

static void free_all(struct map *map)
{
    size_t cursor = 0;
    void  *value;

    while ((value = map_next(map, &cursor, NULL)))
        free(value);
    map_fini(map);
}

void profile_store_fini(struct profile_store *store)
{
    free_all(&store->stacks);
    free_all(&store->frames);
}

/* --- frames --------------------------------------------------------------------------------------- */

static size_t fill_frame_key(struct frame_key *key, const struct profile_frame *frame)
{
    const char *text = frame->kind == PROFILE_LUA ? frame->file : frame->name;

    key->kind       = frame->kind;
    key->line       = frame->line;
    key->defined    = frame->defined;
    key->address    = frame->address;
    key->text_bytes = text ? (uint32_t)strnlen(text, PROFILE_TEXT_BYTES - 1) : 0;
    if (text)
        memcpy(key->text, text, key->text_bytes);
    return offsetof(struct frame_key, text) + key->text_bytes;
}

void profile_store_name(struct profile_frame *frame, const char *name)
{
    struct kept_frame *kept = container_of(frame, struct kept_frame, frame);

    strncpy(kept->name, name, sizeof(kept->name) - 1);
    frame->name = kept->name;
}

static struct profile_frame *keep_frame(struct profile_store       *store,
                                        const struct profile_frame *wanted,
                                        const struct frame_key *key, size_t bytes)
{
    struct kept_frame *kept;

    if (store->frames.count == PROFILE_FRAMES_MAX)
        return NULL;
    kept = calloc(1, offsetof(struct kept_frame, key) + bytes + 1);
    if (!kept)
        return NULL;
    memcpy(&kept->key, key, bytes);
    kept->frame      = *wanted;
    kept->frame.id   = (uint32_t)store->frames.count;
    kept->frame.file = wanted->file ? (char *)&kept->key + offsetof(struct frame_key, text) : NULL;
    if (wanted->name)
        profile_store_name(&kept->frame, wanted->name);
    if (!map_put(&store->frames, str_make((char *)&kept->key, bytes), kept, NULL)) {
        free(kept);
        return NULL;
    }
    return &kept->frame;
}

struct profile_frame *profile_store_frame(struct profile_store       *store,
                                          const struct profile_frame *wanted)
{
    struct frame_key   key;
    size_t             bytes = fill_frame_key(&key, wanted);
    struct kept_frame *kept  = map_get(&store->frames, str_make((char *)&key, bytes));

    return kept ? &kept->frame : keep_frame(store, wanted, &key, bytes);
}

/* --- stacks --------------------------------------------------------------------------------------- */

static struct kept_stack *keep_stack(struct profile_store *store, const struct stack_key *key,
                                     size_t bytes)
{
    struct kept_stack *kept;

    if (store->stacks.count == PROFILE_STACKS_MAX)
        return NULL;
    kept = calloc(1, offsetof(struct kept_stack, key) + bytes);
    if (!kept)
        return NULL;
    memcpy(&kept->key, key, bytes);
    kept->stack.state  = (enum profile_state)key->state;
    kept->stack.depth  = key->depth;
    kept->stack.frames = kept->key.frames;
    if (!map_put(&store->stacks, str_make((char *)&kept->key, bytes), kept, NULL)) {
        free(kept);
        return NULL;
    }
    return kept;
}

void profile_store_add(struct profile_store *store, enum profile_state state,
                       const struct profile_frame *const frames[], unsigned depth, uint64_t count)
{
    struct stack_key   key;
    size_t             bytes = offsetof(struct stack_key, frames) + depth * sizeof(frames[0]);
    struct kept_stack *kept;

    key.state = state;
    key.depth = depth;
    memcpy(key.frames, frames, depth * sizeof(frames[0]));
    kept = map_get(&store->stacks, str_make((char *)&key, bytes));
    if (!kept)
        kept = keep_stack(store, &key, bytes);
    if (!kept) {
        store->lost += count;
        return;
    }
    kept->stack.count += count;
    if (state == PROFILE_WAITS)
        store->waits += count;
    else
        store->samples += count;
}

const struct profile_stack *profile_store_next(const struct profile_store *store, size_t *cursor)
{
    struct kept_stack *kept = map_next(&store->stacks, cursor, NULL);

    return kept ? &kept->stack : NULL;
}
