#include "server/profiler_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/map.h"
#include "base/symbols.h"
#include "vm/profile_store.h"

enum {
    FIELDS_BYTES_MAX = 4096, /* of one frame: its names are bounded by the store */
    FRAMES_MAX       = 4 * PROFILE_FRAMES_MAX,
};

/* A frame as the answer knows it: those of several workers that say the same are one. */
struct told {
    uint32_t      id;
    struct symbol symbol; /* of a C function */
    size_t        bytes;
    char          fields[]; /* "name":...,"kind":... */
};

struct profiler_answer {
    struct symbols       *symbols;
    struct map            frames; /* told, by `fields` */
    struct buf            fields;
    unsigned              worker, worker_count;
    size_t                cursor;    /* in the worker's stacks */
    const struct told   **of_worker; /* its frames by their id in the store */
    struct profile_store *stores[];
};

/* --- life ------------------------------------------------------------------------------------------- */

static bool begin_worker(struct profiler_answer *answer)
{
    const struct profile_store *store = answer->stores[answer->worker];

    free(answer->of_worker);
    answer->cursor    = 0;
    answer->of_worker = calloc(store ? store->frames.count + 1 : 1, sizeof(*answer->of_worker));
    return answer->of_worker != NULL;
}

bool profiler_answer_turn_to(struct profiler_answer *answer, struct profile_store *const stores[])
{
    memcpy(answer->stores, stores, answer->worker_count * sizeof(stores[0]));
    answer->worker = 0;
    return begin_worker(answer);
}

struct profiler_answer *profiler_answer_open(struct profile_store *const stores[], unsigned count)
{
    struct profiler_answer *answer =
        calloc(1, sizeof(*answer) + (count + 1) * sizeof(answer->stores[0]));

    if (!answer)
        return NULL;
    memcpy(answer->stores, stores, count * sizeof(stores[0]));
    answer->worker_count = count;
    map_init(&answer->frames);
    buf_init(&answer->fields, FIELDS_BYTES_MAX);
    answer->symbols = symbols_open();
    if (!answer->symbols || !begin_worker(answer)) {
        profiler_answer_close(answer);
        return NULL;
    }
    return answer;
}

void profiler_answer_close(struct profiler_answer *answer)
{
    size_t cursor = 0;
    void  *told;

    if (!answer)
        return;
    while ((told = map_next(&answer->frames, &cursor, NULL)))
        free(told);
    map_fini(&answer->frames);
    buf_fini(&answer->fields);
    symbols_close(answer->symbols);
    free(answer->of_worker);
    free(answer);
}

/* --- a frame ----------------------------------------------------------------------------------------- */

static void add_text(struct buf *out, const char *field, const char *text)
{
    if (!text || !*text)
        return;
    buf_printf(out, "\"%s\":", field);
    json_string(out, str_of(text));
    buf_add_byte(out, ',');
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_collector(const struct symbol *symbol)
{
    return begins(symbol->name, "lj_gc_") || strcmp(symbol->file, "lj_gc.c") == 0;
}

/* All that LuaJIT's compiler does is done below. */
static bool is_compiler(const struct symbol *symbol)
{
    return strcmp(symbol->name, "trace_state") == 0 || strcmp(symbol->name, "lj_trace_ins") == 0;
}

static void add_lua(struct buf *out, const struct profile_frame *frame)
{
    bool named = *frame->file == '@' || *frame->file == '=';

    add_text(out, "name", frame->name);
    add_text(out, "file", frame->file + named);
    buf_printf(out, "\"line\":%d,\"defined\":%d,", frame->line, frame->defined);
    add_text(out, "kind", begins(frame->file, "=srv/") ? "srv" : "app");
}

static void add_fields(struct buf *out, const struct profile_frame *frame,
                       const struct symbol *symbol)
{
    switch (frame->kind) {
    case PROFILE_LUA: add_lua(out, frame); break;
    case PROFILE_TASK:
        add_text(out, "name", frame->name);
        add_text(out, "kind", "task");
        break;
    case PROFILE_BUILTIN:
        add_text(out, "name", frame->name);
        add_text(out, "kind", "c");
        break;
    case PROFILE_C:
        add_text(out, "name", symbol->name);
        add_text(out, "file", symbol->file);
        add_text(out, "kind", is_collector(symbol) ? "gc" : "c");
        break;
    }
    if (out->len)
        out->len--; /* the last comma */
}

static const struct told *keep(struct profiler_answer *answer, const struct symbol *symbol,
                               struct buf *out)
{
    struct str   fields = buf_str(&answer->fields);
    struct told *told   = malloc(sizeof(*told) + fields.len);

    if (!told)
        return NULL;
    *told = (struct told){ .id     = (uint32_t)answer->frames.count,
                           .symbol = *symbol,
                           .bytes  = fields.len };
    memcpy(told->fields, fields.at, fields.len);
    if (!map_put(&answer->frames, str_make(told->fields, told->bytes), told, NULL)) {
        free(told);
        return NULL;
    }
    buf_printf(out, "{\"frame\":%u,", told->id);
    buf_add_str(out, fields);
    buf_add_str(out, STR("}\n"));
    return told;
}

/* NULL: no memory. */
static const struct told *tell(struct profiler_answer *answer, const struct profile_frame *frame,
                               struct buf *out)
{
    const struct told **known  = &answer->of_worker[frame->id];
    struct symbol       symbol = { .name = "" };

    if (*known)
        return *known;
    if (frame->kind == PROFILE_C)
        symbols_find(answer->symbols, frame->address, &symbol);
    buf_clear(&answer->fields);
    add_fields(&answer->fields, frame, &symbol);
    *known = map_get(&answer->frames, buf_str(&answer->fields));
    if (!*known && answer->frames.count < FRAMES_MAX)
        *known = keep(answer, &symbol, out);
    return *known;
}

/* --- a stack ------------------------------------------------------------------------------------------- */

/* What a task waits for, by how the C function that it waits in is called, or its file. The first that fits. */
static const struct {
    const char *prefix, *wait;
} WAITS[] = {
    { "ltask_sleep", "sleep" }, { "lmutex_", "lock" },   { "lsemaphore_", "lock" },
    { "lchannel_", "channel" }, { "levent_", "event" },  { "lbody", "body" },
    { "lbus", "event" },        { "lclock", "sleep" },   { "lcoding", "job" },
    { "lcrypto", "job" },       { "ldict", "shared" },   { "ldns", "dns" },
    { "lexec", "exec" },        { "lfetch", "fetch" },   { "lfile", "file" },
    { "lfolder", "file" },      { "lfs", "file" },       { "lgroup", "children" },
    { "ljob", "job" },          { "lkey", "job" },       { "llisten", "socket" },
    { "lmigrations", "file" },  { "lpassword", "job" },  { "lpg", "postgres" },
    { "lredis", "redis" },      { "lsocket", "socket" }, { "lsqlite", "sqlite" },
    { "lstream", "send" },      { "ltask", "children" }, { "ludp", "socket" },
};

static const char *wait_of(const struct symbol *symbol)
{
    for (size_t i = 0; i < ARRAY_LEN(WAITS); i++)
        if (begins(symbol->name, WAITS[i].prefix) || begins(symbol->file, WAITS[i].prefix))
            return WAITS[i].wait;
    return "other";
}

static bool any(const struct told *const path[], unsigned depth,
                bool (*is)(const struct symbol *symbol))
{
    for (unsigned i = 0; i < depth; i++)
        if (path[i]->symbol.name[0] && is(&path[i]->symbol))
            return true;
    return false;
}

static const char *state_of(enum profile_state state, const struct told *const path[],
                            unsigned depth)
{
    if (state == PROFILE_WAITS)
        return "wait";
    if (any(path, depth, is_collector))
        return "gc";
    if (any(path, depth, is_compiler))
        return "compile";
    return state == PROFILE_IN_C ? "c" : state == PROFILE_IN_JIT ? "jit" : "lua";
}

/* How libc begins a thread. */
static bool is_start(const struct told *told)
{
    return told->symbol.file[0] && !told->symbol.named;
}

static void add_stack(struct profiler_answer *answer, const struct profile_stack *stack,
                      struct buf *out)
{
    const struct told *path[PROFILE_DEPTH_MAX];
    unsigned           depth = 0;

    for (unsigned i = 0; i < stack->depth; i++) {
        path[depth] = tell(answer, stack->frames[i], out);
        depth += path[depth] != NULL && (depth > 0 || !is_start(path[depth]));
    }
    buf_printf(out, "{\"worker\":%u,\"state\":\"%s\",", answer->worker,
               state_of(stack->state, path, depth));
    if (stack->state == PROFILE_WAITS)
        buf_printf(out, "\"wait\":\"%s\",", depth ? wait_of(&path[depth - 1]->symbol) : "other");
    buf_add_str(out, STR("\"stack\":["));
    for (unsigned i = 0; i < depth; i++) {
        if (i)
            buf_add_byte(out, ',');
        buf_add_u64(out, path[i]->id);
    }
    buf_printf(out, "],\"count\":%llu}\n", (unsigned long long)stack->count);
}

/* --- all --------------------------------------------------------------------------------------------------- */

static const struct profile_stack *next_stack(struct profiler_answer *answer)
{
    while (answer->worker < answer->worker_count) {
        const struct profile_store *store = answer->stores[answer->worker];
        const struct profile_stack *stack =
            store ? profile_store_next(store, &answer->cursor) : NULL;

        if (stack)
            return stack;
        if (++answer->worker < answer->worker_count && !begin_worker(answer))
            answer->worker = answer->worker_count; /* no memory: what was told is told */
    }
    return NULL;
}

bool profiler_answer_next(struct profiler_answer *answer, struct buf *out)
{
    for (unsigned i = 0; i < PROFILER_PIECE_LINES; i++) {
        const struct profile_stack *stack = next_stack(answer);

        if (!stack)
            return false;
        add_stack(answer, stack, out);
    }
    return true;
}

static void add_compiled(struct buf *out)
{
#ifdef SRV_CHECKHOOK
    buf_add_str(out, STR("\"compiled\":true"));
#else
    buf_add_str(out, STR("\"compiled\":false,\"note\":\"compiled code is not seen: this LuaJIT was "
                         "built without CHECKHOOK\""));
#endif
}

void profiler_answer_sums(const struct profiler_answer *answer, struct buf *out)
{
    uint64_t    samples = 0, waits = 0, lost = 0;
    const char *comma = "";

    for (unsigned i = 0; i < answer->worker_count; i++) {
        const struct profile_store *store = answer->stores[i];

        if (!store)
            continue;
        samples += store->samples;
        waits += store->waits;
        lost += store->lost;
    }
    buf_printf(out, "\"samples\":%llu,\"waits\":%llu,\"lost\":%llu,", (unsigned long long)samples,
               (unsigned long long)waits, (unsigned long long)lost);
    add_compiled(out);
    buf_add_str(out, STR(",\"silent\":["));
    for (unsigned i = 0; i < answer->worker_count; i++) {
        if (answer->stores[i])
            continue;
        buf_printf(out, "%s%u", comma, i);
        comma = ",";
    }
    buf_add_byte(out, ']');
}
