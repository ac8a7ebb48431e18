#include "vm/profile_store.h"

#include "support/check.h"

static const struct profile_frame *lua_frame(struct profile_store *store, const char *file,
                                             int line, const char *name)
{
    struct profile_frame wanted = {
        .kind = PROFILE_LUA, .file = file, .line = line, .defined = 1, .name = name
    };

    return profile_store_frame(store, &wanted);
}

TEST(frames_are_told_apart_by_place_and_not_by_name)
{
    struct profile_store        store;
    const struct profile_frame *first;

    profile_store_init(&store);
    first = lua_frame(&store, "@a.lua", 1, "f");
    CHECK(lua_frame(&store, "@a.lua", 1, "g") == first);
    CHECK(lua_frame(&store, "@a.lua", 2, "f") != first);
    CHECK(lua_frame(&store, "@b.lua", 1, "f") != first);
    CHECK_STR(first->name, "f");
    CHECK_STR(first->file, "@a.lua");
    CHECK_INT((int)first->id, 0);
    profile_store_fini(&store);
}

TEST(names_are_copied_and_cut)
{
    struct profile_store        store;
    const struct profile_frame *frame;
    char                        file[1000];

    memset(file, 'x', sizeof(file) - 1);
    file[sizeof(file) - 1] = '\0';
    profile_store_init(&store);
    frame = lua_frame(&store, file, 1, NULL);
    memset(file, 'y', sizeof(file) - 1);
    CHECK_INT((int)strlen(frame->file), PROFILE_TEXT_BYTES - 1);
    CHECK_INT(frame->file[0], 'x');
    CHECK(frame->name == NULL);
    profile_store_fini(&store);
}

TEST(equal_stacks_are_counted_together)
{
    struct profile_store        store;
    const struct profile_frame *path[2];
    const struct profile_stack *stack;
    size_t                      cursor = 0;

    profile_store_init(&store);
    path[0] = lua_frame(&store, "@a.lua", 1, NULL);
    path[1] = lua_frame(&store, "@a.lua", 2, NULL);
    profile_store_add(&store, PROFILE_IN_LUA, path, 2, 3);
    profile_store_add(&store, PROFILE_IN_LUA, path, 2, 4);
    profile_store_add(&store, PROFILE_WAITS, path, 2, 5);
    CHECK_INT((int)store.stacks.count, 2);
    CHECK_INT((int)store.samples, 7);
    CHECK_INT((int)store.waits, 5);
    stack = profile_store_next(&store, &cursor);
    CHECK_INT((int)stack->count, stack->state == PROFILE_WAITS ? 5 : 7);
    CHECK_INT((int)stack->depth, 2);
    CHECK(stack->frames[1] == path[1]);
    profile_store_fini(&store);
}

TEST(what_finds_no_room_is_counted_as_lost)
{
    struct profile_store        store;
    const struct profile_frame *path[2];

    profile_store_init(&store);
    for (int i = 0; i < PROFILE_STACKS_MAX + 10; i++) {
        path[0] = lua_frame(&store, "@a.lua", i % 1000, NULL);
        path[1] = lua_frame(&store, "@b.lua", i / 1000, NULL);
        profile_store_add(&store, PROFILE_IN_C, path, 2, 2);
    }
    profile_store_add(&store, PROFILE_IN_C, path, 1, 1);
    CHECK_INT((int)store.stacks.count, PROFILE_STACKS_MAX);
    CHECK_INT((int)store.samples, 2 * PROFILE_STACKS_MAX);
    CHECK_INT((int)store.lost, 21);
    profile_store_fini(&store);
}

TEST(frames_have_a_bound_too)
{
    struct profile_store store;

    profile_store_init(&store);
    for (int i = 0; i < PROFILE_FRAMES_MAX; i++)
        CHECK(lua_frame(&store, "@a.lua", i, NULL) != NULL);
    CHECK(lua_frame(&store, "@a.lua", PROFILE_FRAMES_MAX, NULL) == NULL);
    CHECK(lua_frame(&store, "@a.lua", 7, NULL) != NULL);
    profile_store_fini(&store);
}

int main(void)
{
    return check_run();
}
