#include "vm/profile_lua.h"

#include "vm/task_impl.h"
#include "vm/vm_state.h"

static const void *function_of(lua_State *L, lua_Debug *ar)
{
    lua_CFunction function;

    lua_getinfo(L, "f", ar);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return (const void *)function;
}

static const struct profile_frame *c_frame(struct profile_store *store, lua_State *L, lua_Debug *ar)
{
    struct profile_frame frame = { .kind = PROFILE_C, .address = (uintptr_t)function_of(L, ar) };

    if (!frame.address) { /* pcall and its like are no C */
        lua_getinfo(L, "n", ar);
        frame.kind = PROFILE_BUILTIN;
        frame.name = ar->name ? ar->name : "?";
    }
    return profile_store_frame(store, &frame);
}

/* A function has no name of its own: it is what the first caller that was seen calls it. */
static const struct profile_frame *lua_frame(struct profile_store *store, lua_State *L,
                                             lua_Debug *ar)
{
    struct profile_frame  wanted = { .kind    = PROFILE_LUA,
                                     .line    = ar->currentline > 0 ? ar->currentline : 0,
                                     .defined = ar->linedefined };
    struct profile_frame *frame;

    wanted.file = *ar->source == '@' || *ar->source == '=' ? ar->source : ar->short_src;
    frame       = profile_store_frame(store, &wanted);
    if (frame && !frame->name && lua_getinfo(L, "n", ar) && ar->name)
        profile_store_name(frame, ar->name);
    return frame;
}

static void add_state(struct profile_lua *out, struct profile_store *store, lua_State *L)
{
    lua_Debug ar;

    for (int level = 0; out->depth < PROFILE_LUA_DEPTH_MAX && lua_getstack(L, level, &ar);
         level++) {
        const struct profile_frame *frame;

        lua_getinfo(L, "Sl", &ar);
        if (out->depth == 0)
            out->source = ar.source;
        frame = *ar.what == 'C' ? c_frame(store, L, &ar) : lua_frame(store, L, &ar);
        if (frame)
            out->frames[out->depth++] = frame;
    }
}

void profile_lua_running(struct profile_lua *out, struct profile_store *store, lua_State *L,
                         const struct vm *vm)
{
    out->depth = 0;
    add_state(out, store, L);
    for (const struct link *link = vm->links; link; link = link->outer)
        add_state(out, store, link->resumer);
}

void profile_lua_waiting(struct profile_lua *out, struct profile_store *store,
                         const struct task *task)
{
    out->depth = 0;
    for (const struct hop *hop = task->hops; hop; hop = hop->outer)
        add_state(out, store, hop->co);
    if (task->co.L)
        add_state(out, store, task->co.L);
}

void profile_lua_call(struct profile_call *out, lua_State *L)
{
    lua_Debug ar;

    if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "Sl", &ar) || ar.currentline <= 0)
        return;
    out->source  = ar.source;
    out->line    = ar.currentline;
    out->defined = ar.linedefined;
}

const struct profile_frame *profile_lua_caller(const struct profile_lua  *lua,
                                               struct profile_store      *store,
                                               const struct profile_call *call)
{
    const struct profile_frame *innermost = lua->frames[0];
    struct profile_frame        wanted    = *innermost;

    if (innermost->kind != PROFILE_LUA || !call->source || call->source != lua->source ||
        call->defined != innermost->defined)
        return innermost;
    wanted.line = call->line;
    return profile_store_frame(store, &wanted);
}
