#include "base/arena.h"

#include <stdint.h>

#include "support/check.h"

static char order[16];

static void note(void *arg)
{
    order[strlen(order) + 1] = '\0';
    order[strlen(order)]     = *(const char *)arg;
}

TEST(memory_is_aligned_and_does_not_overlap)
{
    struct arena_pool pool;
    struct arena      arena;
    unsigned char    *pieces[200];

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    for (int i = 0; i < 200; i++) {
        pieces[i] = arena_alloc(&arena, (size_t)i + 1);
        CHECK_INT((uintptr_t)pieces[i] % 8, 0);
        memset(pieces[i], i, (size_t)i + 1);
    }
    for (int i = 0; i < 200; i++)
        for (int j = 0; j <= i; j++)
            CHECK_INT(pieces[i][j], i);
    arena_reset(&arena);
    arena_pool_fini(&pool);
}

TEST(defers_run_once_last_booked_first)
{
    struct arena_pool pool;
    struct arena      arena;

    order[0] = '\0';
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    arena_defer(&arena, note, "a");
    arena_defer(&arena, note, "b");
    arena_defer(&arena, note, "c");
    arena_reset(&arena);
    arena_reset(&arena);
    CHECK_STR(order, "cba");
    arena_pool_fini(&pool);
}

static void book_another(void *arg)
{
    note("1");
    arena_defer(arg, note, "2");
}

TEST(a_defer_may_book_another)
{
    struct arena_pool pool;
    struct arena      arena;

    order[0] = '\0';
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    arena_defer(&arena, book_another, &arena);
    arena_reset(&arena);
    CHECK_STR(order, "12");
    arena_pool_fini(&pool);
}

TEST(a_chunk_comes_back_to_the_next_arena)
{
    struct arena_pool pool;
    struct arena      arena;
    void             *first;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    first = arena_alloc(&arena, 10);
    arena_reset(&arena);
    CHECK_INT(pool.free_count, 1);
    CHECK(arena_alloc(&arena, 10) == first);
    CHECK_INT(pool.free_count, 0);
    arena_reset(&arena);
    arena_pool_fini(&pool);
}

TEST(the_pool_keeps_no_more_than_its_maximum)
{
    struct arena_pool pool;
    struct arena      arena;

    arena_pool_init(&pool, 2);
    arena_init(&arena, &pool);
    for (int i = 0; i < 20; i++)
        arena_alloc(&arena, 2000);
    arena_reset(&arena);
    CHECK_INT(pool.free_count, 2);
    arena_pool_fini(&pool);
    CHECK_INT(pool.free_count, 0);
}

TEST(a_large_piece_leaves_the_current_chunk_in_use)
{
    struct arena_pool pool;
    struct arena      arena;
    char             *before, *large, *after;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    before = arena_alloc(&arena, 8);
    large  = arena_alloc(&arena, 100000);
    after  = arena_alloc(&arena, 8);
    memset(large, 1, 100000);
    CHECK(after == before + 8);
    arena_reset(&arena);
    CHECK_INT(pool.free_count, 1); /* the large one went back to malloc */
    arena_pool_fini(&pool);
}

TEST(copies_end_in_nul_and_zeroed_memory_is_zero)
{
    struct arena_pool pool;
    struct arena      arena;
    struct str        copy;
    char             *zeros;

    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    memset(arena_alloc(&arena, 1000), 0xff, 1000);
    arena_reset(&arena);
    copy  = arena_copy(&arena, STR("a\0b"));
    zeros = arena_zalloc(&arena, 500);
    CHECK_MEM(copy.at, copy.len + 1, "a\0b", 4);
    for (int i = 0; i < 500; i++)
        CHECK_INT(zeros[i], 0);
    CHECK_STR(arena_copy(&arena, STR_NONE).at, "");
    arena_reset(&arena);
    arena_pool_fini(&pool);
}

int main(void)
{
    return check_run();
}
