/* vm/profile_store.h - distinct stacks and how often each was seen, bounded. One thread at a time. */
#ifndef VM_PROFILE_STORE_H
#define VM_PROFILE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"

enum {
    PROFILE_STACKS_MAX = 100000,
    PROFILE_FRAMES_MAX = 65536,
    PROFILE_DEPTH_MAX  = 128,
    PROFILE_TEXT_BYTES = 256, /* of a file's or a function's name; the rest is cut */
};

enum profile_kind {
    PROFILE_TASK,    /* the label of what runs: `name` */
    PROFILE_LUA,     /* `file`, `line`, `defined`; `name` where the code has one */
    PROFILE_C,       /* the function at `address` */
    PROFILE_BUILTIN, /* of LuaJIT's, with no address: `name` */
};

struct profile_frame {
    enum profile_kind kind;
    uint32_t          id;   /* counts up from 0 */
    const char       *name; /* NULL: not known; the store's own */
    const char       *file; /* the chunk's name as Lua has it: "@app.lua", "=srv/web.lua" */
    int               line, defined;
    uintptr_t         address;
};

enum profile_state { PROFILE_IN_LUA, PROFILE_IN_JIT, PROFILE_IN_C, PROFILE_WAITS };

struct profile_stack {
    enum profile_state           state;
    uint64_t                     count;
    unsigned                     depth;
    const struct profile_frame **frames; /* outermost first */
};

struct profile_store {
    struct map frames, stacks;
    uint64_t   samples, waits, lost;
};

void profile_store_init(struct profile_store *store);
void profile_store_fini(struct profile_store *store);

/* The frame that is like WANTED in all but its id, or a new one; names are copied, and the name of a
 * Lua function does not tell frames apart. NULL: no room. */
struct profile_frame *profile_store_frame(struct profile_store       *store,
                                          const struct profile_frame *wanted);
/* For a frame that has none. */
void profile_store_name(struct profile_frame *frame, const char *name);

/* COUNT more of the stack of FRAMES, outermost first. */
void profile_store_add(struct profile_store *store, enum profile_state state,
                       const struct profile_frame *const frames[], unsigned depth, uint64_t count);

/* Walks all of them, in no order; *CURSOR begins at 0. NULL: that was all. */
const struct profile_stack *profile_store_next(const struct profile_store *store, size_t *cursor);

#endif
